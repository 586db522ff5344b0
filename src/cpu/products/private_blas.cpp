#include "cpu/products/private_blas.h"

#include <algorithm>
#include <cstdlib>
#include <semaphore>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/products/blas_core.h"

namespace shardarray {
namespace {

#if defined(__aarch64__)
#define SHARDARRAY_TRIPLET "aarch64-linux-gnu"
#else
#define SHARDARRAY_TRIPLET "x86_64-linux-gnu"
#endif

/// The library's environment: the kernel choice from the program's, and one thread, since our workers split the rows. Never destroyed: the
/// library may read it at the very end.
char** blas_environment() {
  static auto* const all =
      new std::vector<std::string>{"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "BLIS_NUM_THREADS=1",
                                   "MKL_NUM_THREADS=1", "MKL_THREADING_LAYER=SEQUENTIAL"};
  const char* const wanted = std::getenv("OPENBLAS_CORETYPE");
  if (const std::string core = wanted != nullptr ? wanted : blas_core_type(); !core.empty())
    all->push_back("OPENBLAS_CORETYPE=" + core);
  static auto* const pointers = new std::vector<char*>;
  for (std::string& s : *all) pointers->push_back(s.data());
  pointers->push_back(nullptr);
  return pointers->data();
}

/// A private link namespace with its own C library and hence its own environment: OpenBLAS reads its settings there when it is loaded, and
/// its thread count is global to all its users. Other users of OpenBLAS in the process keep their copy, settings and threads. False:
/// unavailable, see dlerror.
bool make_space(Lmid_t& space) {
  void* const c_library = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW | RTLD_LOCAL);
  char*** environment = nullptr;
  if (c_library == nullptr || dlinfo(c_library, RTLD_DI_LMID, &space) != 0 ||
      !find_symbol(c_library, "environ", environment))
    return false;
  *environment = blas_environment();
  return true;
}
/// One for everything opened: a process can have sixteen.
bool private_space(Lmid_t& space) {
  static Lmid_t made = 0;
  static const bool is_there = make_space(made);
  space = made;
  return is_there;
}

PrivateLibrary open_private(const std::string& named) {
  Lmid_t space = 0;
  PrivateLibrary opened{named};
  if (private_space(space)) {
    if (!named.empty()) {
      opened.library = dlmopen(space, named.c_str(), RTLD_NOW | RTLD_LOCAL);
    } else {
      // The plain name may lead to the openmp or serial build; the path does not.
      for (const char* name :
           {"/usr/lib/" SHARDARRAY_TRIPLET "/openblas-pthread/libopenblas.so.0", "libopenblas.so.0"})
        if (opened.library == nullptr) opened.library = dlmopen(space, name, RTLD_NOW | RTLD_LOCAL);
    }
  }
  const char* const error = opened.library == nullptr ? dlerror() : nullptr;
  if (opened.library == nullptr) opened.problem = error != nullptr ? error : "there is no name space for it";
  return opened;
}
#undef SHARDARRAY_TRIPLET

}  // namespace

std::string named_blas() {
  const char* const path = secure_getenv("SHARDARRAY_BLAS");
  return path != nullptr ? path : "";
}

const PrivateLibrary& private_blas() {
  static const auto& opened = *new PrivateLibrary(open_private(named_blas()));
  return opened;
}

const PrivateLibrary& private_openblas() {
  if (private_blas().named.empty()) return private_blas();
  static const auto& opened = *new PrivateLibrary(open_private(""));
  return opened;
}

namespace {

// Of the smaller of both libraries: a named one has its own configuration.
std::ptrdiff_t most_turns() {
  constexpr std::string_view word = "MAX_THREADS=";
  constexpr std::ptrdiff_t no_limit = 1 << 20, least = 40, spare = 8;
  std::ptrdiff_t most = no_limit;
  for (const PrivateLibrary* const opened : {&private_blas(), &private_openblas()}) {
    const std::string_view config = openblas_config(opened->library);
    if (const auto at = config.find(word); at != config.npos)
      most = std::min(
          most, std::max(least, std::ptrdiff_t{2} * std::atoi(config.data() + at + word.size()) - spare));
  }
  return most;
}
std::counting_semaphore<>& turns() {
  static auto& all = *new std::counting_semaphore<>(most_turns());
  return all;
}

}  // namespace

BlasTurn::BlasTurn() { turns().acquire(); }
BlasTurn::~BlasTurn() { turns().release(); }

const char* openblas_config(void* library) {
  const char* (*get_config)() = nullptr;
  return find_symbol(library, "openblas_get_config", get_config) ? get_config() : "";
}

}  // namespace shardarray

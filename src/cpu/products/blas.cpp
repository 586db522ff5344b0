#include "cpu/products/blas.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/products/blas_core.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

#if defined(__aarch64__)
#define SHARDARRAY_TRIPLET "aarch64-linux-gnu"
#else
#define SHARDARRAY_TRIPLET "x86_64-linux-gnu"
#endif

template <class F> bool find(void* library, const char* symbol, F& f) {
  f = reinterpret_cast<F>(dlsym(library, symbol));
  return f != nullptr;
}

/// What the library finds in its environment: what the program's says of its kernels, and one thread, since our workers share
/// out the rows. Never destroyed: the library may look there at the very end.
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

/// What the user names; empty for OpenBLAS.
std::string named_blas() {
  const char* const path = secure_getenv("SHARDARRAY_BLAS");
  return path != nullptr ? path : "";
}

/// A copy of the BLAS that only we see, with a C library and hence an environment of its own: OpenBLAS reads its settings
/// there when it is loaded, and the number of its threads is one for all who share it. Another user of OpenBLAS in the
/// process keeps his copy, his settings and his threads.
void* open_private_blas(const std::string& named) {
  void* const c_library = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW | RTLD_LOCAL);
  if (c_library == nullptr) return nullptr;
  Lmid_t space = 0;
  char*** environment = nullptr;
  if (dlinfo(c_library, RTLD_DI_LMID, &space) != 0 || !find(c_library, "environ", environment))
    return nullptr;
  *environment = blas_environment();
  if (!named.empty()) return dlmopen(space, named.c_str(), RTLD_NOW | RTLD_LOCAL);
  // The plain name may lead to the openmp or serial build, the path does not.
  for (const char* name :
       {"/usr/lib/" SHARDARRAY_TRIPLET "/openblas-pthread/libopenblas.so.0", "libopenblas.so.0"})
    if (void* const library = dlmopen(space, name, RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

struct PrivateBlas {
  std::string named = named_blas();
  void* library = open_private_blas(named);
  std::string problem;
  PrivateBlas() {
    const char* const error = library == nullptr ? dlerror() : nullptr;
    if (error != nullptr) problem = error;
  }
};

bool open_blas(Blas& t) {
  static const PrivateBlas& opened = *new PrivateBlas;  // once: a process may have sixteen name spaces
  void* const library = opened.library;
  t.problem = opened.problem;
  const char* (*get_config)() = nullptr;
  if (library != nullptr && find(library, "openblas_get_config", get_config)) t.config = get_config();
  const bool found = library != nullptr && find(library, "cblas_sgemm", t.sgemm) &&
                     find(library, "cblas_dgemm", t.dgemm) && find(library, "cblas_sgemv", t.sgemv) &&
                     find(library, "cblas_dgemv", t.dgemv);
  if (!found && !opened.named.empty())
    throw Error(fmt::format(
        "environment: SHARDARRAY_BLAS={}: {}. It names a library with cblas_sgemm, cblas_dgemm, cblas_sgemv "
        "and cblas_dgemv, whose integers have 32 bits. Correct the variable, or unset it for OpenBLAS.",
        opened.named, library == nullptr ? t.problem : "these functions are not in it"));
  return found;
}
#undef SHARDARRAY_TRIPLET

struct BlasState {
  std::mutex mutex;
  BlasOpener open = open_blas;
  bool tried = false, found = false;
  Blas table;
};

BlasState& blas_state() {
  static auto* const s = new BlasState;
  return *s;
}

}  // namespace

const Blas* blas() {
  BlasState& s = blas_state();
  const std::lock_guard lock(s.mutex);
  if (!s.tried) {
    s.table = {};
    s.found = s.open(s.table);
    const std::string_view config = s.table.config;
    if (s.found && config.find("SINGLE_THREADED") != config.npos) {
      throw CompileError(fmt::format(
          "matmul: the BLAS is the serial build ('{}'). It gives wrong results when several threads call it. "
          "Install libopenblas0-pthread.",
          config));
    }
    s.tried = true;
    if (!s.found) {
      fmt::print(
          stderr,
          "shardarray: no BLAS found{}, large matrix products are slow. Install libopenblas0-pthread.\n",
          s.table.problem.empty() ? "" : " (" + s.table.problem + ")");
    } else if (config.find("USE_OPENMP") != config.npos) {
      std::fputs(
          "shardarray: the BLAS is an OpenMP build, which is slow when several threads call it. Install "
          "libopenblas0-pthread.\n",
          stderr);
    }
  }
  return s.found ? &s.table : nullptr;
}

BlasOpener set_blas_opener(BlasOpener open) {
  BlasState& s = blas_state();
  const std::lock_guard lock(s.mutex);
  const BlasOpener before = s.open;
  s.open = open != nullptr ? open : open_blas;
  s.tried = false;
  return before;
}

}  // namespace shardarray

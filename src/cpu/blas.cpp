#include "cpu/blas.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

#include "cpu/blas_core.h"
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

bool open_blas(Blas& t) {
  // OpenBLAS reads both when it is loaded. Our workers share out the rows, so each call runs on one thread, also where
  // the variable says otherwise or the library has been loaded before.
  setenv("OPENBLAS_NUM_THREADS", "1", 0);
  if (const std::string core = blas_core_type(); !core.empty()) setenv("OPENBLAS_CORETYPE", core.c_str(), 0);
  // The plain name may lead to the openmp or serial build, the path does not.
  void* library =
      dlopen("/usr/lib/" SHARDARRAY_TRIPLET "/openblas-pthread/libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  void (*set_num_threads)(int) = nullptr;
  if (find(library, "openblas_set_num_threads", set_num_threads)) set_num_threads(1);
  const char* (*get_config)() = nullptr;
  if (find(library, "openblas_get_config", get_config)) t.config = get_config();
  return find(library, "cblas_sgemm", t.sgemm) && find(library, "cblas_dgemm", t.dgemm) &&
         find(library, "cblas_sgemv", t.sgemv) && find(library, "cblas_dgemv", t.dgemv);
}
#undef SHARDARRAY_TRIPLET

struct BlasState {
  std::mutex mutex;
  BlasOpener open = open_blas;
  bool tried = false, found = false;
  Blas table;
};

BlasState& blas_state() {
  static BlasState s;
  return s;
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
      std::fputs("shardarray: no BLAS found, large matrix products are slow. Install libopenblas0-pthread.\n",
                 stderr);
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

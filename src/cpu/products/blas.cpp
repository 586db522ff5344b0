#include "cpu/products/blas.h"

#include <fmt/format.h>

#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

#include "cpu/products/private_blas.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

bool open_blas(Blas& t) {
  const PrivateLibrary& opened = private_blas();
  void* const library = opened.library;
  t.problem = opened.problem;
  t.config = openblas_config(library);
  const bool found =
      find_symbol(library, "cblas_sgemm", t.sgemm) && find_symbol(library, "cblas_dgemm", t.dgemm) &&
      find_symbol(library, "cblas_sgemv", t.sgemv) && find_symbol(library, "cblas_dgemv", t.dgemv);
  if (!found && !opened.named.empty())
    throw Error(fmt::format(
        "environment: SHARDARRAY_BLAS={}: {}. It names a library with cblas_sgemm, cblas_dgemm, cblas_sgemv "
        "and cblas_dgemv, whose integers have 32 bits. Correct the variable, or unset it for OpenBLAS.",
        opened.named, library == nullptr ? t.problem : "these functions are not in it"));
  return found;
}

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
          "shardarray: no BLAS found{}: products with a vector, and on CPUs without AVX2 all large ones, are "
          "slow. Install libopenblas0-pthread.\n",
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

bool blas_is_named() {
  BlasState& s = blas_state();
  const std::lock_guard lock(s.mutex);
  static const bool by_user = !named_blas().empty();
  return by_user || s.open != open_blas;
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

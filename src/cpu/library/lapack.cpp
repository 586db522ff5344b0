#include "cpu/library/lapack.h"

#include <fmt/format.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "cpu/products/private_blas.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

/// Calls f with every function of the table and its name without the dtype's letter.
template <class T, class F> bool each_lapack_function(LapackOf<T>& t, const F& f) {
  constexpr bool complex = is_complex_number<T>;
  return f("trsm_", t.trsm) && f("potrf_", t.potrf) && f("getrf_", t.getrf) && f("geqrf_", t.geqrf) &&
         f(complex ? "ungqr_" : "orgqr_", t.orgqr) && f(complex ? "heevd_" : "syevd_", t.syevd) &&
         f("gesdd_", t.gesdd);
}

/// Whether its integers have 32 bits: it is made to write its version into three 64-bit ones.
bool has_short_integers(void* library) {
  void (*version)(std::int64_t*, std::int64_t*, std::int64_t*) = nullptr;
  if (!find_symbol(library, "ilaver_", version)) return false;
  std::int64_t major = -1, minor = -1, patch = -1;
  version(&major, &minor, &patch);
  return (major >> 32) == -1;
}

/// Empty, or what the library lacks.
std::string fill_lapack(void* library, Lapack& t) {
  std::string missing;
  const auto all = [&](const std::string& letter, auto& table) {
    return each_lapack_function(table, [&](const char* name, auto& f) {
      if (find_symbol(library, (letter + name).c_str(), f)) return true;
      missing = letter + name;
      return false;
    });
  };
  if (!all("s", t.f32) || !all("d", t.f64) || !all("c", t.c64) || !all("z", t.c128))
    return "there is no " + missing + " in it";
  if (!has_short_integers(library)) return "its integers have 64 bits";
  const std::string_view config = openblas_config(library);
  return config.find("SINGLE_THREADED") == config.npos ? "" : "it is a build for one thread";
}

std::string open_lapack(Lapack& t) {
  if (!private_blas().named.empty() && private_blas().library != nullptr &&
      fill_lapack(private_blas().library, t).empty())
    return "";
  const PrivateLibrary& openblas = private_openblas();
  return openblas.library == nullptr ? openblas.problem : fill_lapack(openblas.library, t);
}

struct LapackState {
  std::mutex mutex;
  LapackOpener open = open_lapack;
  bool tried = false;
  Lapack table;
  std::string problem;
};

LapackState& lapack_state() {
  static auto* const s = new LapackState;
  return *s;
}

}  // namespace

const Lapack& lapack(const char* kernel) {
  LapackState& s = lapack_state();
  const std::lock_guard lock(s.mutex);
  if (!s.tried) {
    s.table = {};
    s.problem = s.open(s.table);
    s.tried = true;
  }
  if (!s.problem.empty())
    throw Error(fmt::format(
        "{}: no LAPACK ({}). Matrices are factorised by the one in OpenBLAS, or in the library that "
        "SHARDARRAY_BLAS names. Install libopenblas0-pthread.",
        kernel, s.problem));
  return s.table;
}

LapackOpener set_lapack_opener(LapackOpener open) {
  LapackState& s = lapack_state();
  const std::lock_guard lock(s.mutex);
  const LapackOpener before = s.open;
  s.open = open != nullptr ? open : open_lapack;
  s.tried = false;
  return before;
}

}  // namespace shardarray

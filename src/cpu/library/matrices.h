// Shared by matrix kernels: units are matrices or blocks of their columns; LAPACK is column-major.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <memory>

#include "cpu/address.h"
#include "cpu/library/lapack.h"
#include "cpu/library/library_call.h"
#include "cpu/products/private_blas.h"
#include "shardarray/error.h"

namespace shardarray {

/// An operand or result of an item: `count` matrices of m rows and n columns, or vectors of n elements (m is 1).
struct Matrices {
  std::int64_t count = 1;
  int m = 1, n = 0;
  std::int64_t elements() const { return std::int64_t{m} * n; }
};
/// The last `rank` dimensions are a matrix (2) or a vector (1). Throws CompileError for more rows than LAPACK can count.
Matrices matrices_of(const char* kernel, const Shape& shape, std::size_t rank);

/// Element `offset` of an operand or result.
template <class T> T* elements_at(void* const* bases, const Ref& r, std::int64_t offset) {
  return reinterpret_cast<T*>(address(bases, r)) + offset;
}
/// Calls f with a value of the C++ type of `t`, if LAPACK has it.
template <class F> LibraryPlan with_lapack_type(const char* kernel, DType t, const F& f) {
  if (t == DType::float32) return f(float{});
  if (t == DType::float64) return f(double{});
  if (t == DType::complex64) return f(std::complex<float>{});
  if (t == DType::complex128) return f(std::complex<double>{});
  refuse_dtype(kernel, t, "float32, float64, complex64 or complex128");
}
/// The time of so many multiplications and additions at one core's speed.
template <class T> double arithmetic_ns(double flops) {
  const double of_one = is_complex_number<T> ? 4 : 1;
  return flops * of_one * 0.025 * sizeof(part_of_t<T>) / 4;
}

/// Uninitialized memory.
template <class T> std::unique_ptr<T[]> room_for(std::int64_t n) {
  return std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(std::max<std::int64_t>(n, 1)));
}
/// A valid leading dimension for LAPACK: never 0.
inline int leading(int rows) { return std::max(rows, 1); }

/// to[j * rows + i] = from[i * columns + j]. One cache line of each row at a time: of rows with a power-of-two stride a cache holds few, so
/// lines are not revisited.
template <class T> void turn(const T* from, int rows, int columns, T* to) {
  constexpr int side = std::max<int>(1, 64 / sizeof(T));
  T square[side][side];
  for (int i0 = 0; i0 < rows; i0 += side)
    for (int j0 = 0; j0 < columns; j0 += side) {
      const int m = std::min(side, rows - i0), n = std::min(side, columns - j0);
      for (int i = 0; i < m; i++) {
        const T* const row = from + std::int64_t{i0 + i} * columns + j0;
        for (int j = 0; j < n; j++) square[j][i] = row[j];
      }
      for (int j = 0; j < n; j++) std::copy_n(square[j], m, to + std::int64_t{j0 + j} * rows + i0);
    }
}
/// Row-major to column-major.
template <class T> void to_columns(const T* from, int m, int n, T* to) { turn(from, m, n, to); }
/// And back.
template <class T> void to_rows(const T* from, int m, int n, T* to) { turn(from, n, m, to); }

template <class T> bool all_finite(const T* x, std::int64_t n) {
  return std::all_of(x, x + n, [](T v) {
    if constexpr (is_complex_number<T>) return std::isfinite(v.real()) && std::isfinite(v.imag());
    else return std::isfinite(v);
  });
}
/// NaN, in both parts.
template <class T> void fill_nan(T* x, std::int64_t n) {
  constexpr auto nan = std::numeric_limits<part_of_t<T>>::quiet_NaN();
  if constexpr (is_complex_number<T>) std::fill_n(x, n, T(nan, nan));
  else std::fill_n(x, n, nan);
}

/// Kernels whose non-finite results are recomputed in float64: sscal of OpenBLAS 0.3.21 treats a NaN factor as 0, so that values that
/// depend on a NaN pivot become finite. The pivot itself stays NaN.
template <class T> constexpr bool hides_nan = std::is_same_v<T, float>;
inline std::unique_ptr<double[]> widened(const float* x, std::int64_t n) {
  auto r = room_for<double>(n);
  std::copy_n(x, n, r.get());
  return r;
}
inline void narrow(const double* x, std::int64_t n, float* to) {
  std::transform(x, x + n, to, [](double v) { return static_cast<float>(v); });
}

/// Throws CompileError for a workspace too large for LAPACK's integers, which it would silently compute wrong.
inline void check_workspace(const char* kernel, std::int64_t least) {
  if (least >= std::numeric_limits<int>::max())
    throw CompileError(
        std::string(kernel) +
        ": its workspace has more than 2^31 elements. LAPACK counts in 32 bits. Factorise smaller "
        "matrices.");
}

/// The workspace size from a query's answer: a float may have rounded it down. Throws like check_workspace().
template <class T> int workspace_size(const char* kernel, T asked) {
  using Part = part_of_t<T>;
  const double size =
      std::ceil(static_cast<double>(std::nextafter(std::real(asked), std::numeric_limits<Part>::infinity())));
  check_workspace(kernel, size < 0x1p62 ? static_cast<std::int64_t>(size) : std::int64_t{1} << 62);
  return std::max(1, static_cast<int>(size));
}

}  // namespace shardarray

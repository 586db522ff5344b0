// Polynomials as vectors of coefficients, the highest power first: numpy's names, JAX's types and values. polyval stands in
// products.h. Operands of several are promoted. All throw ShapeError for what is no vector.
#pragma once
#include <optional>

#include "shardarray/products.h"

namespace shardarray {

/// The sum and the difference: as long as the longer one, of any dtype (bool: add only).
inline constexpr struct SHARDARRAY_API polyadd_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} polyadd{};
inline constexpr struct SHARDARRAY_API polysub_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} polysub{};
/// The product, floating: convolve(a, b). One without coefficients is 0.
inline constexpr struct SHARDARRAY_API polymul_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} polymul{};
/// The derivative, m times, floating: m coefficients less. Throws ShapeError for m < 0.
inline constexpr struct SHARDARRAY_API polyder_fn {
  [[nodiscard]] Array operator()(const Array& p, std::int64_t m = 1, Where w = Where::here()) const;
} polyder{};
/// The integral, m times, floating: m coefficients more, `k` the constants, a number for all or one for each time, the first one
/// first. Throws ShapeError for m < 0 and another number of constants.
inline constexpr struct SHARDARRAY_API polyint_fn {
  [[nodiscard]] Array operator()(const Array& p, std::int64_t m = 1, const Array& k = 0,
                                 Where w = Where::here()) const;
} polyint{};
/// Vector [n] of roots -> [n + 1]: the polynomial with these roots and 1 in front, floating. As many steps as there are roots.
inline constexpr struct SHARDARRAY_API poly_fn {
  [[nodiscard]] Array operator()(const Array& roots, Where w = Where::here()) const;
} poly{};
/// Vector [m] -> [m, n]: the powers n - 1 .. 0 of each element, or 0 .. n - 1. n: m unless given. Throws ShapeError for n < 0.
inline constexpr struct SHARDARRAY_API vander_fn {
  [[nodiscard]] Array operator()(const Array& x, std::optional<std::int64_t> n = std::nullopt,
                                 bool increasing = false, Where w = Where::here()) const;
} vander{};
/// Options of polyfit: `polyfit(x, y, 2, {.w = weights})`.
struct PolyfitOptions {
  /// Singular values below this part of the largest one count as 0. Default: eps of x times how many there are.
  std::optional<double> rcond = std::nullopt;
  Array w = {};  ///< [m]: the weight of each distance; absent: 1
};
/// The polynomial of this degree whose distances to y at the places x [m] have the least sum of squares, floating: y [m] -> [degree
/// + 1], y [m, k] -> [degree + 1, k]. By linalg::lstsq, so on CPU devices. Throws ShapeError for degree < 0, no places, other sizes.
inline constexpr struct SHARDARRAY_API polyfit_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& y, std::int64_t degree,
                                 const PolyfitOptions& o = {}, Where w = Where::here()) const;
} polyfit{};

}  // namespace shardarray

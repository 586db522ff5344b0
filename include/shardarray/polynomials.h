// Polynomials as vectors of coefficients, highest power first: NumPy's names, JAX's types and values. polyval is in products.h. Several
// operands are promoted. All throw ShapeError for operands that are not vectors.
#pragma once
#include <optional>

#include "shardarray/products.h"

namespace shardarray {

/// Sum and difference: as long as the longer one, of any dtype (bool: add only).
inline constexpr struct SHARDARRAY_API polyadd_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} polyadd{};
inline constexpr struct SHARDARRAY_API polysub_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} polysub{};
/// The product, floating: convolve(a, b). A polynomial without coefficients is 0.
inline constexpr struct SHARDARRAY_API polymul_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} polymul{};
/// The m-th derivative, floating: m coefficients fewer. Throws ShapeError for m < 0.
inline constexpr struct SHARDARRAY_API polyder_fn {
  [[nodiscard]] Array operator()(const Array& p, std::int64_t m = 1, Where w = Where::here()) const;
} polyder{};
/// The m-fold integral, floating: m coefficients more. `k` are the integration constants, one number for all or one per integration,
/// first one first. Throws ShapeError for m < 0 and another number of constants.
inline constexpr struct SHARDARRAY_API polyint_fn {
  [[nodiscard]] Array operator()(const Array& p, std::int64_t m = 1, const Array& k = 0,
                                 Where w = Where::here()) const;
} polyint{};
/// Vector [n] of roots -> [n + 1]: the monic polynomial with these roots, floating. Takes as many steps as there are roots.
inline constexpr struct SHARDARRAY_API poly_fn {
  [[nodiscard]] Array operator()(const Array& roots, Where w = Where::here()) const;
} poly{};
/// The Vandermonde matrix of a vector, [m] -> [m, n]: powers n - 1 .. 0 of each element, or 0 .. n - 1. n defaults to m. Throws
/// ShapeError for n < 0.
inline constexpr struct SHARDARRAY_API vander_fn {
  [[nodiscard]] Array operator()(const Array& x, std::optional<std::int64_t> n = std::nullopt,
                                 bool increasing = false, Where w = Where::here()) const;
} vander{};
/// Options of polyfit: `polyfit(x, y, 2, {.w = weights})`.
struct PolyfitOptions {
  /// Singular values below this fraction of the largest one are treated as 0. Default: eps of x times the number of samples.
  std::optional<double> rcond = std::nullopt;
  Array w = {};  ///< [m]: the weight of each deviation; absent: 1
};
/// The least-squares polynomial of this degree through y at the positions x [m], floating: y [m] -> [degree + 1], y [m, k] ->
/// [degree + 1, k]. By linalg::lstsq, so on CPU devices. Throws ShapeError for degree < 0, no samples, other sizes.
inline constexpr struct SHARDARRAY_API polyfit_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& y, std::int64_t degree,
                                 const PolyfitOptions& o = {}, Where w = Where::here()) const;
} polyfit{};

}  // namespace shardarray

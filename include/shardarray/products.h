// Products built from those of ops.h, and functions of one-dimensional samples: NumPy's names, JAX's types and values. Operands are
// promoted to one dtype; bool, integers and accuracy as there.
#pragma once
#include <vector>

#include "shardarray/ops.h"

namespace shardarray {

// ---------------------------------------------------------------- vectors and matrices
/// The outer product [n, m] of both flattened arrays.
inline constexpr struct SHARDARRAY_API outer_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} outer{};
/// [a.., k] x [b.., k] -> [a.., b..]: contracts the last axes; multiplies with a scalar. Throws ShapeError if these differ.
inline constexpr struct SHARDARRAY_API inner_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} inner{};
/// The inner product of both flattened arrays, with the conjugate of a if complex. Throws ShapeError for different numbers of elements.
inline constexpr struct SHARDARRAY_API vdot_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} vdot{};
/// [.., k] x [.., k] -> [..]: inner products of vectors along an axis, with the conjugate of the first if complex; the other dimensions
/// are broadcast.
inline constexpr struct SHARDARRAY_API vecdot_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, std::int64_t axis = -1,
                                 Where w = Where::here()) const;
} vecdot{};
/// [.., m, k] x [.., k] -> [.., m] and [.., k] x [.., k, n] -> [.., n]: for a batch of vectors, which matmul would take for a matrix.
/// vecmat conjugates complex vectors.
inline constexpr struct SHARDARRAY_API matvec_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& v, Where w = Where::here()) const;
} matvec{};
inline constexpr struct SHARDARRAY_API vecmat_fn {
  [[nodiscard]] Array operator()(const Array& v, const Array& a, Where w = Where::here()) const;
} vecmat{};
/// The Kronecker product: replaces every element of a by it times b. Sizes multiply; the lower rank is padded with leading 1s.
inline constexpr struct SHARDARRAY_API kron_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} kron{};
/// The cross product of vectors of 3 elements along an axis; other dimensions are broadcast. For 2 and 2 elements only its third
/// component, for 2 and 3 with 0 for the missing element. Throws ShapeError for other sizes.
inline constexpr struct SHARDARRAY_API cross_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, std::int64_t axis = -1,
                                 Where w = Where::here()) const;
} cross{};
/// x @ x @ ..., n times, for square matrices, by squaring; for 0 the identity, for n < 0 the power -n of linalg::inv(x). Throws
/// ShapeError for matrices that are not square.
inline constexpr struct SHARDARRAY_API matrix_power_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t n, Where w = Where::here()) const;
} matrix_power{};
/// The matrix product of all operands, in their common dtype, in the order with the fewest multiplications; the first and the last may be
/// vectors. Throws ShapeError for fewer than two, and for sizes that do not fit.
inline constexpr struct SHARDARRAY_API multi_dot_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& operands, Where w = Where::here()) const;
} multi_dot{};

// ---------------------------------------------------------------- samples
/// Options of diff: `diff(x, {.axis = 0, .append = 0})`.
struct DiffOptions {
  std::int64_t n = 1;
  std::int64_t axis = -1;
  ArrayOption prepend =
      {};  ///< placed before x before the differences are taken; a scalar is one element per line
  ArrayOption append = {};  ///< the same after x
};
/// x[1:] - x[:-1] along an axis, n times; for bools whether they differ. Throws ShapeError for a scalar and n < 0, and as concatenate for
/// what does not fit x.
inline constexpr struct SHARDARRAY_API diff_fn {
  [[nodiscard]] Array operator()(const Array& x, const DiffOptions& o = {}, Where w = Where::here()) const;
  template <std::integral N>
  [[nodiscard]] Array operator()(const Array& x, N n, std::int64_t axis = -1, Where w = Where::here()) const {
    return (*this)(x, DiffOptions{.n = to_int64(n), .axis = axis}, w);
  }
} diff{};
/// Differences of neighbours in the flattened array, with optional elements before and after, cast to the dtype of x.
inline constexpr struct SHARDARRAY_API ediff1d_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& to_end = {}, const Array& to_begin = {},
                                 Where w = Where::here()) const;
} ediff1d{};
/// Options of unwrap: `unwrap(x, {.period = 360})`.
struct UnwrapOptions {
  std::int64_t axis = -1;
  double period = 6.283185307179586;             ///< two pi
  std::optional<double> discont = std::nullopt;  ///< smaller steps are kept. Default: half a period
};
/// Changes phases along an axis by whole periods so that no step exceeds half a period; floating. Throws ShapeError for a scalar, Error
/// for a period that is not positive.
inline constexpr struct SHARDARRAY_API unwrap_fn {
  [[nodiscard]] Array operator()(const Array& x, const UnwrapOptions& o = {}, Where w = Where::here()) const;
} unwrap{};
/// The derivative along an axis of evenly spaced samples, floating: central differences inside, one-sided differences at the ends.
/// Instead of the distance, a vector of positions may be given; then inner slopes are those of the parabola through three samples. Along
/// several axes, one array each: `gradient(x, {0, 1}, {0.5, places})`, with a number or a vector per axis, or one for all. Throws
/// ShapeError for fewer than two samples, another number of distances and positions that do not fit.
inline constexpr struct SHARDARRAY_API gradient_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t axis = -1, double distance = 1,
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, std::int64_t axis, const Array& places,
                                 Where w = Where::here()) const;
  [[nodiscard]] std::vector<Array> operator()(const Array& x, const Shape& axes,
                                              const std::vector<Array>& distances = {},
                                              Where w = Where::here()) const;
} gradient{};
/// The integral along an axis by the trapezoidal rule, floating: of samples y at this distance, or at positions x, a vector or of y's
/// shape. Throws ShapeError for positions that do not fit.
inline constexpr struct SHARDARRAY_API trapezoid_fn {
  [[nodiscard]] Array operator()(const Array& y, double distance = 1, std::int64_t axis = -1,
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& y, const Array& x, std::int64_t axis = -1,
                                 Where w = Where::here()) const;
} trapezoid{};
/// Values of interp out of range: those of the nearest sample by default.
struct InterpOptions {
  std::optional<double> left = std::nullopt, right = std::nullopt;
};
/// Linear interpolation at x of the samples values[k] at increasing places[k], floating. Throws ShapeError unless both are non-empty
/// vectors of one size.
inline constexpr struct SHARDARRAY_API interp_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& places, const Array& values,
                                 const InterpOptions& o = {}, Where w = Where::here()) const;
} interp{};
/// The polynomial p[0] x^(n-1) + .. + p[n-1], by Horner's rule. Throws ShapeError unless p is a vector.
inline constexpr struct SHARDARRAY_API polyval_fn {
  [[nodiscard]] Array operator()(const Array& p, const Array& x, Where w = Where::here()) const;
} polyval{};
/// Which sums convolve returns: all with any overlap of a and b, the central ones (as many as the longer operand has elements), or those
/// with full overlap.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class ConvolveMode : std::uint8_t { full, same, valid };
#pragma GCC diagnostic pop
/// Convolution of vectors: sum over k of a[i - k] b[k], floating or complex. The longer one may be sharded: only borders of its shards
/// move. Up to 16 shifted copies of a shard are stored, also for its gradient; jvp stores one per element of the shorter one, with which
/// the program grows. Throws ShapeError unless both are non-empty vectors.
inline constexpr struct SHARDARRAY_API convolve_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, ConvolveMode mode = ConvolveMode::full,
                                 Where w = Where::here()) const;
} convolve{};
/// Correlation: sum over k of a[i + k] b[k], with the conjugate of b if complex. Throws as convolve.
inline constexpr struct SHARDARRAY_API correlate_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, ConvolveMode mode = ConvolveMode::valid,
                                 Where w = Where::here()) const;
} correlate{};

}  // namespace shardarray

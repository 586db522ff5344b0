// Products made of those in ops.h, and functions of samples on a line: numpy's names, JAX's types and values. Operands are promoted
// to one dtype; bool, integers and exactness as there.
#pragma once
#include <vector>

#include "shardarray/ops.h"

namespace shardarray {

// ---------------------------------------------------------------- vectors and matrices
/// [n, m]: every element of a times every element of b, both flattened.
inline constexpr struct SHARDARRAY_API outer_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} outer{};
/// [a.., k] x [b.., k] -> [a.., b..]: over both last axes; with a scalar: multiply. Throws ShapeError when they differ.
inline constexpr struct SHARDARRAY_API inner_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} inner{};
/// The inner product of both flattened arrays, of complex numbers with the conjugate of a. Throws ShapeError for different numbers of elements.
inline constexpr struct SHARDARRAY_API vdot_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} vdot{};
/// [.., k] x [.., k] -> [..]: the inner products of vectors along an axis of both, of complex numbers with the first one's conjugates; the
/// other dimensions are broadcast.
inline constexpr struct SHARDARRAY_API vecdot_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, std::int64_t axis = -1,
                                 Where w = Where::here()) const;
} vecdot{};
/// [.., m, k] x [.., k] -> [.., m] and [.., k] x [.., k, n] -> [.., n]: a batch of vectors, where matmul takes a matrix. vecmat takes
/// the conjugates of complex vectors.
inline constexpr struct SHARDARRAY_API matvec_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& v, Where w = Where::here()) const;
} matvec{};
inline constexpr struct SHARDARRAY_API vecmat_fn {
  [[nodiscard]] Array operator()(const Array& v, const Array& a, Where w = Where::here()) const;
} vecmat{};
/// Every element of a replaced by it times b: sizes multiply, the lower rank is filled up with 1 in front.
inline constexpr struct SHARDARRAY_API kron_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, Where w = Where::here()) const;
} kron{};
/// The cross product of vectors of 3 elements along an axis, the others are broadcast; of 2 and 2 elements its third component
/// alone, of 2 and 3 with 0 for what is missing. Throws ShapeError for other sizes.
inline constexpr struct SHARDARRAY_API cross_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, std::int64_t axis = -1,
                                 Where w = Where::here()) const;
} cross{};
/// x @ x @ ..., n times, of square matrices, by squaring; of 0 the identity, of n < 0 the power -n of linalg::inv(x). Throws
/// ShapeError for what is not square.
inline constexpr struct SHARDARRAY_API matrix_power_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t n, Where w = Where::here()) const;
} matrix_power{};
/// The matrix product of all, in their common dtype and the order that multiplies the fewest numbers; the first and the last one may
/// be vectors. Throws ShapeError for fewer than two, and for what does not fit.
inline constexpr struct SHARDARRAY_API multi_dot_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& operands, Where w = Where::here()) const;
} multi_dot{};

// ---------------------------------------------------------------- samples
/// Options of diff: `diff(x, {.axis = 0, .append = 0})`.
struct DiffOptions {
  std::int64_t n = 1;
  std::int64_t axis = -1;
  ArrayOption prepend =
      {};  ///< stands in front of x before the differences are taken; a scalar is one element of each line
  ArrayOption append = {};  ///< the same behind x
};
/// x[1:] - x[:-1] along an axis, n times; of bools whether they differ. Throws ShapeError for a scalar and n < 0, and as concatenate
/// for what does not fit to x.
inline constexpr struct SHARDARRAY_API diff_fn {
  [[nodiscard]] Array operator()(const Array& x, const DiffOptions& o = {}, Where w = Where::here()) const;
  template <std::integral N>
  [[nodiscard]] Array operator()(const Array& x, N n, std::int64_t axis = -1, Where w = Where::here()) const {
    return (*this)(x, DiffOptions{.n = to_int64(n), .axis = axis}, w);
  }
} diff{};
/// The differences of neighbours in the flattened array, with other elements in front and behind, which take the dtype of x.
inline constexpr struct SHARDARRAY_API ediff1d_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& to_end = {}, const Array& to_begin = {},
                                 Where w = Where::here()) const;
} ediff1d{};
/// Options of unwrap: `unwrap(x, {.period = 360})`.
struct UnwrapOptions {
  std::int64_t axis = -1;
  double period = 6.283185307179586;             ///< two pi
  std::optional<double> discont = std::nullopt;  ///< smaller steps stay. Default: half a period
};
/// Phases along an axis, floating, changed by whole periods so that no step is larger than half of one. Throws ShapeError for a
/// scalar, Error for a period that is not positive.
inline constexpr struct SHARDARRAY_API unwrap_fn {
  [[nodiscard]] Array operator()(const Array& x, const UnwrapOptions& o = {}, Where w = Where::here()) const;
} unwrap{};
/// The slope along an axis of samples at this distance, floating: half the difference of both neighbours, at the ends of the
/// element and its only one. Instead of the distance a vector of places, where the slope inside is that of the parabola through three
/// samples. Along several axes one array for each: `gradient(x, {0, 1}, {0.5, places})`, with a number or a vector for each axis, or
/// one for all. Throws ShapeError for fewer than two samples, other numbers of distances and places that do not fit.
inline constexpr struct SHARDARRAY_API gradient_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t axis = -1, double distance = 1,
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, std::int64_t axis, const Array& places,
                                 Where w = Where::here()) const;
  [[nodiscard]] std::vector<Array> operator()(const Array& x, const Shape& axes,
                                              const std::vector<Array>& distances = {},
                                              Where w = Where::here()) const;
} gradient{};
/// The integral along an axis by trapezoids, floating: samples y at this distance, or at the places x, a vector or of y's shape.
/// Throws ShapeError for other places.
inline constexpr struct SHARDARRAY_API trapezoid_fn {
  [[nodiscard]] Array operator()(const Array& y, double distance = 1, std::int64_t axis = -1,
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& y, const Array& x, std::int64_t axis = -1,
                                 Where w = Where::here()) const;
} trapezoid{};
/// What interp gives outside of its samples: the nearest one unless given.
struct InterpOptions {
  std::optional<double> left = std::nullopt, right = std::nullopt;
};
/// The value at x of the line through the samples values[k] at rising places[k], floating. Throws ShapeError unless both are vectors
/// of one size that is not 0.
inline constexpr struct SHARDARRAY_API interp_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& places, const Array& values,
                                 const InterpOptions& o = {}, Where w = Where::here()) const;
} interp{};
/// p[0] x^(n-1) + .. + p[n-1], by Horner's rule. Throws ShapeError unless p is a vector.
inline constexpr struct SHARDARRAY_API polyval_fn {
  [[nodiscard]] Array operator()(const Array& p, const Array& x, Where w = Where::here()) const;
} polyval{};
/// Of all sums in which a and b overlap: all of them, as many as the longer one has in their middle, or where they overlap as a
/// whole.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class ConvolveMode : std::uint8_t { full, same, valid };
#pragma GCC diagnostic pop
/// Vectors: sum over k of a[i - k] b[k], floating or complex. The longer one may be cut: of its pieces only borders move, and up to 16 shifted
/// copies of a piece are stored, of its gradient too; jvp stores one for every element of the shorter one, with which the program
/// grows. Throws ShapeError for what is no vector, or empty.
inline constexpr struct SHARDARRAY_API convolve_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, ConvolveMode mode = ConvolveMode::full,
                                 Where w = Where::here()) const;
} convolve{};
/// Sum over k of a[i + k] b[k], of complex numbers with the conjugate of b. Throws as convolve.
inline constexpr struct SHARDARRAY_API correlate_fn {
  [[nodiscard]] Array operator()(const Array& a, const Array& b, ConvolveMode mode = ConvolveMode::valid,
                                 Where w = Where::here()) const;
} correlate{};

}  // namespace shardarray

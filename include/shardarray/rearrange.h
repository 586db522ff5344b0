// More functions that rearrange and join arrays and make grids: NumPy's names, JAX's types and values. Elements are moved, not computed:
// the result has the dtype of x (for several arrays the promoted one) unless stated otherwise.
#pragma once
#include <optional>
#include <vector>

#include "shardarray/ops.h"

namespace shardarray {

// ---------------------------------------------------------------- repeating
/// Repeats x: `tile(x, {2, 3})` has twice the rows and three times the columns. Counted from the last dimension; the shorter of shape and
/// list is padded with leading 1s. The result is stored, even if only its sum is used. Throws ShapeError for a negative number.
inline constexpr struct SHARDARRAY_API tile_fn {
  [[nodiscard]] Array operator()(const Array& x, const Shape& repeats, Where w = Where::here()) const;
  template <std::integral N>
  [[nodiscard]] Array operator()(const Array& x, N repeats, Where w = Where::here()) const {
    return (*this)(x, Shape{to_int64(repeats)}, w);
  }
} tile{};
/// Options of repeat with an array of counts: `repeat(x, counts, {.total_repeat_length = 8})`.
struct RepeatOptions {
  std::optional<std::int64_t> axis = std::nullopt;  ///< none: of the flattened array
  /// The size of the result along the axis: excess elements are dropped, missing ones are the last element. Default: the sum of the
  /// counts, whose values are read.
  std::optional<std::int64_t> total_repeat_length = std::nullopt;
};
/// Repeats every element n times along an axis; without an axis: in the flattened array. A list or vector of counts applies to each
/// element, negative ones as 0: `repeat(x, {2, 0, 1})`. Throws ShapeError for n < 0 and for another number of counts, DTypeError for
/// non-integer counts, TraceError for an array of counts inside a trace without a length.
inline constexpr struct SHARDARRAY_API repeat_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t n,
                                 std::optional<std::int64_t> axis = std::nullopt,
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, const Shape& counts,
                                 std::optional<std::int64_t> axis = std::nullopt,
                                 Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, const Array& counts, const RepeatOptions& o = {},
                                 Where w = Where::here()) const;
} repeat{};
/// What pad_general adds to a dimension: elements before, after, and between neighbours. Negative: elements removed.
struct PadWidths {
  std::int64_t low = 0, high = 0, interior = 0;
};
/// lax.pad: `pad_general(x, {{1, -1, 0}, {0, 0, 2}}, value)`; first between elements, then at both ends. The value is a scalar of x's
/// dtype. Throws ShapeError unless there are widths for each dimension, for a negative interior, and if more is removed than there is.
inline constexpr struct SHARDARRAY_API pad_general_fn {
  [[nodiscard]] Array operator()(const Array& x, const std::vector<PadWidths>& widths, const Array& value = 0,
                                 Where w = Where::here()) const;
} pad_general{};

// ---------------------------------------------------------------- ranks
/// Flattens to one dimension, in row-major order.
inline constexpr struct SHARDARRAY_API ravel_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
} ravel{};
/// Adds dimensions of size 1 up to this rank: leading ones, but the third one last.
inline constexpr struct SHARDARRAY_API atleast_1d_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
} atleast_1d{};
inline constexpr struct SHARDARRAY_API atleast_2d_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
} atleast_2d{};
inline constexpr struct SHARDARRAY_API atleast_3d_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
} atleast_3d{};
/// Broadcasts all arrays to their common shape, each keeping its dtype. Throws ShapeError if there is none.
inline constexpr struct SHARDARRAY_API broadcast_arrays_fn {
  [[nodiscard]] std::vector<Array> operator()(const std::vector<Array>& arrays,
                                              Where w = Where::here()) const;
} broadcast_arrays{};

// ---------------------------------------------------------------- joining and splitting
/// Joins horizontally: along the second axis, vectors along their only one. Throw as concatenate.
inline constexpr struct SHARDARRAY_API hstack_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& parts, Where w = Where::here()) const;
} hstack{};
/// Stacks vertically: along the first axis of at least two dimensions; vectors are rows.
inline constexpr struct SHARDARRAY_API vstack_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& parts, Where w = Where::here()) const;
} vstack{};
/// Stacks in depth: along the third axis of at least three dimensions.
inline constexpr struct SHARDARRAY_API dstack_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& parts, Where w = Where::here()) const;
} dstack{};
/// As hstack, but vectors are columns.
inline constexpr struct SHARDARRAY_API column_stack_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& parts, Where w = Where::here()) const;
} column_stack{};
/// Appends values to x along an axis; without an axis: both flattened.
inline constexpr struct SHARDARRAY_API append_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& values,
                                 std::optional<std::int64_t> axis = std::nullopt,
                                 Where w = Where::here()) const;
} append{};
/// As split, but n parts need not be equal: the first ones have one element more. Throws ShapeError for n < 1 and beyond 2^20.
inline constexpr struct SHARDARRAY_API array_split_fn {
  [[nodiscard]] std::vector<Array> operator()(const Array& x, std::int64_t n, std::int64_t axis = 0,
                                              Where w = Where::here()) const;
} array_split{};
/// Flips along the second (fliplr) or the first axis (flipud). Throw ShapeError for a lower rank.
inline constexpr struct SHARDARRAY_API fliplr_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
} fliplr{};
inline constexpr struct SHARDARRAY_API flipud_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
} flipud{};

/// Split along the first (vsplit), the second (hsplit; vectors along their only one) or the third axis (dsplit): `hsplit(x, 2)`,
/// `hsplit(x, {1, 4})`. Throw as split, and ShapeError for a lower rank.
inline constexpr struct SHARDARRAY_API vsplit_fn {
  template <std::integral N>
  [[nodiscard]] std::vector<Array> operator()(const Array& x, N n, Where w = Where::here()) const {
    return pieces(x, to_int64(n), w);
  }
  [[nodiscard]] std::vector<Array> operator()(const Array& x, const Shape& positions,
                                              Where w = Where::here()) const;

 private:
  [[nodiscard]] std::vector<Array> pieces(const Array& x, std::int64_t n, Where w) const;
} vsplit{};
inline constexpr struct SHARDARRAY_API hsplit_fn {
  template <std::integral N>
  [[nodiscard]] std::vector<Array> operator()(const Array& x, N n, Where w = Where::here()) const {
    return pieces(x, to_int64(n), w);
  }
  [[nodiscard]] std::vector<Array> operator()(const Array& x, const Shape& positions,
                                              Where w = Where::here()) const;

 private:
  [[nodiscard]] std::vector<Array> pieces(const Array& x, std::int64_t n, Where w) const;
} hsplit{};
inline constexpr struct SHARDARRAY_API dsplit_fn {
  template <std::integral N>
  [[nodiscard]] std::vector<Array> operator()(const Array& x, N n, Where w = Where::here()) const {
    return pieces(x, to_int64(n), w);
  }
  [[nodiscard]] std::vector<Array> operator()(const Array& x, const Shape& positions,
                                              Where w = Where::here()) const;

 private:
  [[nodiscard]] std::vector<Array> pieces(const Array& x, std::int64_t n, Where w) const;
} dsplit{};
/// Splits along an axis into slices without that axis, as many as it is long. Throws ShapeError beyond 2^20.
inline constexpr struct SHARDARRAY_API unstack_fn {
  [[nodiscard]] std::vector<Array> operator()(const Array& x, std::int64_t axis = 0,
                                              Where w = Where::here()) const;
} unstack{};
/// `block({{a, b}, {c, d}})`: a matrix of blocks, given by rows; arrays of fewer than two dimensions are rows. Throws as concatenate.
[[nodiscard]] SHARDARRAY_API Array block(const std::vector<std::vector<Array>>& rows,
                                         Where w = Where::here());
/// A block-diagonal matrix in the common dtype, zeros elsewhere; arrays of fewer than two dimensions are rows. Throws ShapeError without
/// matrices, and for more than two dimensions.
inline constexpr struct SHARDARRAY_API block_diag_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& matrices, Where w = Where::here()) const;
} block_diag{};
/// Swaps the last two axes. Throws ShapeError for a lower rank.
inline constexpr struct SHARDARRAY_API matrix_transpose_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
} matrix_transpose{};

// ---------------------------------------------------------------- bits
/// Which bit of a byte comes first: the highest or the lowest one.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class BitOrder : std::uint8_t { big, little };
#pragma GCC diagnostic pop
/// Packs whether elements are non-zero into uint8, eight each, along an axis or of the flattened array; the last byte is padded with 0.
/// Throws DTypeError for floats.
inline constexpr struct SHARDARRAY_API packbits_fn {
  [[nodiscard]] Array operator()(const Array& x, std::optional<std::int64_t> axis = std::nullopt,
                                 BitOrder order = BitOrder::big, Where w = Where::here()) const;
} packbits{};
/// Options of unpackbits: `unpackbits(x, {.count = 10})`.
struct UnpackbitsOptions {
  std::optional<std::int64_t> axis = std::nullopt;  ///< none: of the flattened array
  std::optional<std::int64_t> count =
      std::nullopt;  ///< the number of bits, padded with zeros at the end; default: all bits of x
  BitOrder order = BitOrder::big;
};
/// The inverse: uint8, 0 or 1, eight for each byte. Throws DTypeError unless x is uint8, ShapeError for a negative count.
inline constexpr struct SHARDARRAY_API unpackbits_fn {
  [[nodiscard]] Array operator()(const Array& x, const UnpackbitsOptions& o = {},
                                 Where w = Where::here()) const;
} unpackbits{};

// ---------------------------------------------------------------- diagonals
/// Diagonal k of two axes, as a new last dimension: k > 0 is above the main one; out of range it is empty. Throws ShapeError for equal
/// axes.
inline constexpr struct SHARDARRAY_API diagonal_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t k = 0, std::int64_t axis1 = 0,
                                 std::int64_t axis2 = 1, Where w = Where::here()) const;
} diagonal{};
/// For a vector, the matrix with it on diagonal k and zeros elsewhere; for a matrix, its diagonal k. Throws ShapeError for other ranks.
inline constexpr struct SHARDARRAY_API diag_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t k = 0, Where w = Where::here()) const;
} diag{};
/// The sum of diagonal k, with the dtype of sum.
inline constexpr struct SHARDARRAY_API trace_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t k = 0, std::int64_t axis1 = 0,
                                 std::int64_t axis2 = 1, Where w = Where::here()) const;
} trace{};
/// [n, m]: ones on and below diagonal k, zeros above. m defaults to n.
inline constexpr struct SHARDARRAY_API tri_fn {
  [[nodiscard]] Array operator()(std::int64_t n, std::optional<std::int64_t> m = std::nullopt,
                                 std::int64_t k = 0, DType dtype = float32, Where w = Where::here()) const;
} tri{};
/// x with a value, or n of them, on the main diagonal of a matrix, n being its shorter side; for more dimensions, which must be equal,
/// where all indices are. Values are cast to the dtype of x. Throws ShapeError for fewer than two dimensions, unequal ones and other
/// numbers of values, DTypeError for floats into integers.
inline constexpr struct SHARDARRAY_API fill_diagonal_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& value, Where w = Where::here()) const;
} fill_diagonal{};
/// [n, n]: eye(n).
inline constexpr struct SHARDARRAY_API identity_matrix_fn {
  [[nodiscard]] Array operator()(std::int64_t n, DType dtype = float32, Where w = Where::here()) const;
} identity{};

// ---------------------------------------------------------------- grids
/// Which of the first two vectors varies along the first dimension of a grid: ij the first, xy the second.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class Indexing : std::uint8_t { xy, ij };
#pragma GCC diagnostic pop
/// For n vectors, the n arrays of n dimensions with the coordinates of their grid, each in its dtype. Throws ShapeError unless all are
/// vectors.
inline constexpr struct SHARDARRAY_API meshgrid_fn {
  [[nodiscard]] std::vector<Array> operator()(const std::vector<Array>& vectors,
                                              Indexing indexing = Indexing::xy,
                                              Where w = Where::here()) const;
} meshgrid{};
/// [rank, shape..]: the indices of all elements of an array of this shape.
inline constexpr struct SHARDARRAY_API indices_fn {
  [[nodiscard]] Array operator()(const Shape& shape, DType dtype = int32, Where w = Where::here()) const;
} indices{};
/// base to the power linspace(start, stop, num, o), computed in float64.
inline constexpr struct SHARDARRAY_API logspace_fn {
  [[nodiscard]] Array operator()(double start, double stop, std::int64_t num = 50,
                                 const LinspaceOptions& o = {}, double base = 10,
                                 Where w = Where::here()) const;
} logspace{};
/// [num]: geometrically spaced values from start to stop, 10^linspace(log10 start, log10 stop) computed in float64; both ends are exact.
/// Throws Error unless both have the same sign and are non-zero.
inline constexpr struct SHARDARRAY_API geomspace_fn {
  [[nodiscard]] Array operator()(double start, double stop, std::int64_t num = 50,
                                 const LinspaceOptions& o = {}, Where w = Where::here()) const;
} geomspace{};

}  // namespace shardarray

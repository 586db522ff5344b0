// More ways to rearrange arrays, to join them and to make grids: numpy's names, JAX's types and values. Elements are moved, not
// computed: the result has the dtype of x (of several arrays the promoted one) unless a doc says otherwise.
#pragma once
#include <optional>
#include <vector>

#include "shardarray/ops.h"

namespace shardarray {

// ---------------------------------------------------------------- repeating
/// x side by side: `tile(x, {2, 3})` has twice the rows and three times the columns. Counted from the last dimension; the shorter
/// of both lists is filled up with 1 in front. The result is stored, also where only its sum is wanted. Throws ShapeError for a
/// negative number.
inline constexpr struct SHARDARRAY_API tile_fn {
  [[nodiscard]] Array operator()(const Array& x, const Shape& repeats, Where w = Where::here()) const;
  template <std::integral N>
  [[nodiscard]] Array operator()(const Array& x, N repeats, Where w = Where::here()) const {
    return (*this)(x, Shape{to_int64(repeats)}, w);
  }
} tile{};
/// Options of repeat where an array counts: `repeat(x, counts, {.total_repeat_length = 8})`.
struct RepeatOptions {
  std::optional<std::int64_t> axis = std::nullopt;  ///< none: of the flattened array
  /// The size of the result along the axis: what is more goes, what is missing is the last element. Default: the sum of the
  /// counts, whose values are read.
  std::optional<std::int64_t> total_repeat_length = std::nullopt;
};
/// Every element n times, one behind the other, along an axis; no axis: of the flattened array. With a list or a vector of counts each
/// as often as it says, negative ones are 0: `repeat(x, {2, 0, 1})`. Throws ShapeError for n < 0 and for another number of counts,
/// DTypeError for counts that are no integers, TraceError for an array of them inside a trace without a length.
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
/// What pad_general does to a dimension: elements in front, behind, and between two neighbours. Negative: elements that go.
struct PadWidths {
  std::int64_t low = 0, high = 0, interior = 0;
};
/// lax.pad: `pad_general(x, {{1, -1, 0}, {0, 0, 2}}, value)`; what stands between elements comes first, then both ends. The value is a
/// scalar, of the dtype of x. Throws ShapeError unless there are widths for each dimension, for a negative interior, and where more
/// goes than there is.
inline constexpr struct SHARDARRAY_API pad_general_fn {
  [[nodiscard]] Array operator()(const Array& x, const std::vector<PadWidths>& widths, const Array& value = 0,
                                 Where w = Where::here()) const;
} pad_general{};

// ---------------------------------------------------------------- ranks
/// One dimension: all elements in row-major order.
inline constexpr struct SHARDARRAY_API ravel_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
} ravel{};
/// x with new dimensions of size 1 up to this rank: in front, but the third one behind.
inline constexpr struct SHARDARRAY_API atleast_1d_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
} atleast_1d{};
inline constexpr struct SHARDARRAY_API atleast_2d_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
} atleast_2d{};
inline constexpr struct SHARDARRAY_API atleast_3d_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
} atleast_3d{};
/// All arrays in their common shape, each in its dtype. Throws ShapeError where there is none.
inline constexpr struct SHARDARRAY_API broadcast_arrays_fn {
  [[nodiscard]] std::vector<Array> operator()(const std::vector<Array>& arrays,
                                              Where w = Where::here()) const;
} broadcast_arrays{};

// ---------------------------------------------------------------- joining and splitting
/// Joins side by side: along the second axis, vectors along their only one. Throw as concatenate.
inline constexpr struct SHARDARRAY_API hstack_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& parts, Where w = Where::here()) const;
} hstack{};
/// One below the other: along the first axis of what has two dimensions at least; vectors are rows.
inline constexpr struct SHARDARRAY_API vstack_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& parts, Where w = Where::here()) const;
} vstack{};
/// One behind the other: along the third axis of what has three dimensions at least.
inline constexpr struct SHARDARRAY_API dstack_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& parts, Where w = Where::here()) const;
} dstack{};
/// hstack, where vectors are columns.
inline constexpr struct SHARDARRAY_API column_stack_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& parts, Where w = Where::here()) const;
} column_stack{};
/// values behind x along an axis; no axis: of both flattened.
inline constexpr struct SHARDARRAY_API append_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& values,
                                 std::optional<std::int64_t> axis = std::nullopt,
                                 Where w = Where::here()) const;
} append{};
/// split into n pieces that need not be equal: the first ones have one element more. Throws ShapeError for n < 1 and beyond 2^20.
inline constexpr struct SHARDARRAY_API array_split_fn {
  [[nodiscard]] std::vector<Array> operator()(const Array& x, std::int64_t n, std::int64_t axis = 0,
                                              Where w = Where::here()) const;
} array_split{};
/// flip along the second (fliplr) or the first axis (flipud). Throw ShapeError for a lower rank.
inline constexpr struct SHARDARRAY_API fliplr_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
} fliplr{};
inline constexpr struct SHARDARRAY_API flipud_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
} flipud{};

/// split along the first (vsplit), the second (hsplit; vectors along their only one) or the third axis (dsplit): `hsplit(x, 2)`,
/// `hsplit(x, {1, 4})`. Throw as split, ShapeError for a lower rank.
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
/// The parts along an axis, which they lack: as many arrays as it is long. Throws ShapeError beyond 2^20.
inline constexpr struct SHARDARRAY_API unstack_fn {
  [[nodiscard]] std::vector<Array> operator()(const Array& x, std::int64_t axis = 0,
                                              Where w = Where::here()) const;
} unstack{};
/// `block({{a, b}, {c, d}})`: rows of matrices side by side, one below the other; what has less than two dimensions is a row. Throws as
/// concatenate.
[[nodiscard]] SHARDARRAY_API Array block(const std::vector<std::vector<Array>>& rows,
                                         Where w = Where::here());
/// Matrices along the diagonal of a matrix, in their common dtype, zeros elsewhere; what has less than two dimensions is a row. Throws
/// ShapeError without matrices, and for more than two dimensions.
inline constexpr struct SHARDARRAY_API block_diag_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& matrices, Where w = Where::here()) const;
} block_diag{};
/// The last two axes exchanged. Throws ShapeError for a lower rank.
inline constexpr struct SHARDARRAY_API matrix_transpose_fn {
  [[nodiscard]] Array operator()(const Array& x, Where w = Where::here()) const;
} matrix_transpose{};

// ---------------------------------------------------------------- bits
/// Which bit of a byte comes first: the highest or the lowest one.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class BitOrder : std::uint8_t { big, little };
#pragma GCC diagnostic pop
/// Whether elements are not 0, eight in a uint8, along an axis or of the flattened array; what is missing of the last eight counts as
/// 0. Throws DTypeError for floats.
inline constexpr struct SHARDARRAY_API packbits_fn {
  [[nodiscard]] Array operator()(const Array& x, std::optional<std::int64_t> axis = std::nullopt,
                                 BitOrder order = BitOrder::big, Where w = Where::here()) const;
} packbits{};
/// Options of unpackbits: `unpackbits(x, {.count = 10})`.
struct UnpackbitsOptions {
  std::optional<std::int64_t> axis = std::nullopt;  ///< none: of the flattened array
  std::optional<std::int64_t> count =
      std::nullopt;  ///< how many bits there are; 0 where there are no more. Default: all
  BitOrder order = BitOrder::big;
};
/// The other way: uint8, 0 or 1, eight for each byte. Throws DTypeError for what is not uint8, ShapeError for a negative count.
inline constexpr struct SHARDARRAY_API unpackbits_fn {
  [[nodiscard]] Array operator()(const Array& x, const UnpackbitsOptions& o = {},
                                 Where w = Where::here()) const;
} unpackbits{};

// ---------------------------------------------------------------- diagonals
/// Diagonal k of two axes, as a new last dimension: k > 0 lies above the main one, further ones are empty. Throws ShapeError for
/// equal axes.
inline constexpr struct SHARDARRAY_API diagonal_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t k = 0, std::int64_t axis1 = 0,
                                 std::int64_t axis2 = 1, Where w = Where::here()) const;
} diagonal{};
/// Of a vector the matrix with it on diagonal k and zeros elsewhere, of a matrix its diagonal k. Throws ShapeError for other ranks.
inline constexpr struct SHARDARRAY_API diag_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t k = 0, Where w = Where::here()) const;
} diag{};
/// The sum of diagonal k, of sum's dtype.
inline constexpr struct SHARDARRAY_API trace_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t k = 0, std::int64_t axis1 = 0,
                                 std::int64_t axis2 = 1, Where w = Where::here()) const;
} trace{};
/// [n, m]: ones on diagonal k and below it, zeros above. m: n unless given.
inline constexpr struct SHARDARRAY_API tri_fn {
  [[nodiscard]] Array operator()(std::int64_t n, std::optional<std::int64_t> m = std::nullopt,
                                 std::int64_t k = 0, DType dtype = float32, Where w = Where::here()) const;
} tri{};
/// x with a value, or n of them, on the main diagonal of a matrix, n is its shorter side; of more dimensions, which are equal then,
/// where all indices are. Values take the dtype of x. Throws ShapeError for less than two dimensions, different ones and other numbers
/// of values, DTypeError for fractions in whole numbers.
inline constexpr struct SHARDARRAY_API fill_diagonal_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& value, Where w = Where::here()) const;
} fill_diagonal{};
/// [n, n]: eye(n).
inline constexpr struct SHARDARRAY_API identity_matrix_fn {
  [[nodiscard]] Array operator()(std::int64_t n, DType dtype = float32, Where w = Where::here()) const;
} identity{};

// ---------------------------------------------------------------- grids
/// Which of the first two vectors runs along the rows of a grid: ij the first, xy the second.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class Indexing : std::uint8_t { xy, ij };
#pragma GCC diagnostic pop
/// Of n vectors the n arrays of n dimensions that hold the coordinates of their grid, each in its dtype. Throws ShapeError for what
/// is no vector.
inline constexpr struct SHARDARRAY_API meshgrid_fn {
  [[nodiscard]] std::vector<Array> operator()(const std::vector<Array>& vectors,
                                              Indexing indexing = Indexing::xy,
                                              Where w = Where::here()) const;
} meshgrid{};
/// [rank, shape..]: the indices of an array of this shape.
inline constexpr struct SHARDARRAY_API indices_fn {
  [[nodiscard]] Array operator()(const Shape& shape, DType dtype = int32, Where w = Where::here()) const;
} indices{};
/// base to the powers linspace(start, stop, num, o), computed in float64.
inline constexpr struct SHARDARRAY_API logspace_fn {
  [[nodiscard]] Array operator()(double start, double stop, std::int64_t num = 50,
                                 const LinspaceOptions& o = {}, double base = 10,
                                 Where w = Where::here()) const;
} logspace{};
/// [num]: values from start to stop with equal ratios, 10^linspace(log10 start, log10 stop) computed in float64; both ends are
/// exact. Throws Error unless both have one sign and are not 0.
inline constexpr struct SHARDARRAY_API geomspace_fn {
  [[nodiscard]] Array operator()(double start, double stop, std::int64_t num = 50,
                                 const LinspaceOptions& o = {}, Where w = Where::here()) const;
} geomspace{};

}  // namespace shardarray

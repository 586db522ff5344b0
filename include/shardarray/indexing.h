// Data-dependent positions and access: nonzero, put_along_axis, choose, dynamic_slice, .. Subscripts with arrays (x[rows],
// x.at(rows).add(v)) are in array.h, take in ops.h, take_along_axis in ordering.h.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "shardarray/ops.h"

namespace shardarray {

// ---------------------------------------------------------------- positions of non-zero elements
/// The positions of non-zero elements, in order: one vector [size] per dimension, padded with `fill_value`; positions beyond `size` are
/// dropped. Throws ShapeError for a scalar and a negative size.
[[nodiscard]] SHARDARRAY_API std::vector<Array> nonzero(const Array& x, std::int64_t size,
                                                        std::int64_t fill_value = 0, Where w = Where::here());
/// All of them; reads their number, so not inside a trace.
[[nodiscard]] SHARDARRAY_API std::vector<Array> nonzero(const Array& x, Where w = Where::here());
/// [size]: their positions in the flattened array. Throws ShapeError for a negative size.
inline constexpr struct SHARDARRAY_API flatnonzero_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t size, std::int64_t fill_value = 0,
                                 Where w = Where::here()) const;
} flatnonzero{};
/// [size, rank]: their positions as rows. Throws as nonzero.
inline constexpr struct SHARDARRAY_API argwhere_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t size, std::int64_t fill_value = 0,
                                 Where w = Where::here()) const;
} argwhere{};
/// The slices of x along an axis, or elements of the flattened array, where the vector `condition` is true: `size` of them, padded with
/// `fill_value`. The condition may be shorter. Throws ShapeError for a condition that is longer or not a vector, and for a negative size.
inline constexpr struct SHARDARRAY_API compress_fn {
  [[nodiscard]] Array operator()(const Array& condition, const Array& x, std::int64_t size,
                                 std::optional<std::int64_t> axis = std::nullopt, double fill_value = 0,
                                 Where w = Where::here()) const;
} compress{};
/// [size]: the elements of x where `condition`, of the same shape, is true, in order, padded with `fill_value`. Throws ShapeError for
/// another shape and a negative size.
inline constexpr struct SHARDARRAY_API extract_fn {
  [[nodiscard]] Array operator()(const Array& condition, const Array& x, std::int64_t size,
                                 double fill_value = 0, Where w = Where::here()) const;
} extract{};

/// Rows and columns, int32, of the lower (upper) triangle, from diagonal k on, of a matrix [n, m]. m defaults to n. Throws ShapeError for
/// negative sizes.
[[nodiscard]] SHARDARRAY_API std::pair<Array, Array> tril_indices(
    std::int64_t n, std::int64_t k = 0, std::optional<std::int64_t> m = std::nullopt,
    Where w = Where::here());
[[nodiscard]] SHARDARRAY_API std::pair<Array, Array> triu_indices(
    std::int64_t n, std::int64_t k = 0, std::optional<std::int64_t> m = std::nullopt,
    Where w = Where::here());

// ---------------------------------------------------------------- static positions
/// Inserts values before position `at` along an axis, or of the flattened array. Values have the dtype of x (after a cast) and its shape
/// except along the axis, where they may have any length. Fewer dimensions are padded with leading 1s, and the first one is then the
/// axis, as in NumPy. With a list, one value (or one for all) before each position of x: `insert(x, {1, 3}, values)`. Negative positions
/// count from the end. Only elements that shift move between devices. Throws ShapeError for a position out of range, and for values that
/// do not fit, DTypeError for floats into integers.
inline constexpr struct SHARDARRAY_API insert_fn {
  template <std::integral N>
  [[nodiscard]] Array operator()(const Array& x, N at, const Array& values,
                                 std::optional<std::int64_t> axis = std::nullopt,
                                 Where w = Where::here()) const {
    return in_front_of(x, to_int64(at), values, axis, w);
  }
  [[nodiscard]] Array operator()(const Array& x, const Shape& at, const Array& values,
                                 std::optional<std::int64_t> axis = std::nullopt,
                                 Where w = Where::here()) const;

 private:
  [[nodiscard]] Array in_front_of(const Array& x, std::int64_t at, const Array& values,
                                  std::optional<std::int64_t> axis, Where w) const;
} insert{};
/// Removes these positions along an axis, or of the flattened array; negative ones count from the end, repeated ones count once. Throws
/// ShapeError for a position out of range.
inline constexpr struct SHARDARRAY_API delete_fn {
  template <std::integral N>
  [[nodiscard]] Array operator()(const Array& x, N at, std::optional<std::int64_t> axis = std::nullopt,
                                 Where w = Where::here()) const {
    return (*this)(x, Shape{to_int64(at)}, axis, w);
  }
  [[nodiscard]] Array operator()(const Array& x, const Shape& at,
                                 std::optional<std::int64_t> axis = std::nullopt,
                                 Where w = Where::here()) const;
} delete_{};

// ---------------------------------------------------------------- positions in several dimensions
/// Converts positions in the flattened array to positions in each dimension of `shape`; negative ones count from the end, others out of
/// range are clamped. Throws DTypeError for floats and bools, ShapeError for an empty shape.
[[nodiscard]] SHARDARRAY_API std::vector<Array> unravel_index(const Array& index, const Shape& shape,
                                                              Where w = Where::here());
/// The inverse: positions are broadcast to one shape; out-of-range ones are treated by the mode (fill: invalid). Throws DTypeError for
/// floats and bools, ShapeError unless there is one per dimension.
[[nodiscard]] SHARDARRAY_API Array ravel_multi_index(const std::vector<Array>& index, const Shape& shape,
                                                     TakeMode mode = TakeMode::clip, Where w = Where::here());

// ---------------------------------------------------------------- along an axis
/// Writes values at individual indices: out[index[i, j], j] = values[i, j] along axis 0. Values are cast to the dtype of x and broadcast
/// to the index; its other sizes are those of x, or 1. Negative indices count from the end, others out of range are ignored; of equal
/// ones the last wins. Throws as take_along_axis, DTypeError for floats into integers.
inline constexpr struct SHARDARRAY_API put_along_axis_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& index, const Array& values, std::int64_t axis,
                                 Where w = Where::here()) const;
} put_along_axis{};
/// out[i] = choices[index[i]][i], all broadcast to one shape and promoted to one dtype. Out-of-range indices are treated by the mode.
/// Throws DTypeError unless the index is an integer, ShapeError without choices.
[[nodiscard]] SHARDARRAY_API Array choose(const Array& index, const std::vector<Array>& choices,
                                          TakeMode mode = TakeMode::clip, Where w = Where::here());

// ---------------------------------------------------------------- parts at data-dependent positions
/// The part of x of shape `sizes` that starts at `starts`, an integer scalar per dimension; negative ones count from the end. Starts are
/// clamped so that the part fits into x. Throws DTypeError for non-integer starts, ShapeError for another number of them, for non-scalar
/// starts, and for sizes larger than those of x. Source: jax.lax.dynamic_slice.
[[nodiscard]] SHARDARRAY_API Array dynamic_slice(const Array& x, const std::vector<Array>& starts,
                                                 const Shape& sizes, Where w = Where::here());
/// x with that part replaced by `update`, cast to the dtype of x. Throws as dynamic_slice, DTypeError for floats into integers. If x is
/// donated, or not read afterwards, as in a loop that carries it, only that part is written. Source: jax.lax.dynamic_update_slice.
[[nodiscard]] SHARDARRAY_API Array dynamic_update_slice(const Array& x, const Array& update,
                                                        const std::vector<Array>& starts,
                                                        Where w = Where::here());
/// The same along one axis. Source: jax.lax.dynamic_slice_in_dim, dynamic_update_slice_in_dim.
[[nodiscard]] SHARDARRAY_API Array dynamic_slice_in_dim(const Array& x, const Array& start, std::int64_t size,
                                                        std::int64_t axis = 0, Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array dynamic_update_slice_in_dim(const Array& x, const Array& update,
                                                               const Array& start, std::int64_t axis = 0,
                                                               Where w = Where::here());
/// One slice along an axis, which is kept with size 1 unless `keepdims` is false. Source: jax.lax.dynamic_index_in_dim.
[[nodiscard]] SHARDARRAY_API Array dynamic_index_in_dim(const Array& x, const Array& index,
                                                        std::int64_t axis = 0, bool keepdims = true,
                                                        Where w = Where::here());

}  // namespace shardarray

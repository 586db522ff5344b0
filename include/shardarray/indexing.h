// nonzero, put_along_axis, choose, dynamic_slice, ..: positions that data says, and what stands there. Subscripts with arrays
// (x[rows], x.at(rows).add(v)) are in array.h, take in ops.h, take_along_axis in ordering.h.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "shardarray/ops.h"

namespace shardarray {

// ---------------------------------------------------------------- positions of what is not zero
/// The positions of what is not zero, in order: a vector [size] for each dimension; `fill_value` behind the last one, and what is
/// more than `size` is left out. Throws ShapeError for a scalar and a negative size.
[[nodiscard]] SHARDARRAY_API std::vector<Array> nonzero(const Array& x, std::int64_t size,
                                                        std::int64_t fill_value = 0, Where w = Where::here());
/// As many as there are; reads their number, which no trace allows.
[[nodiscard]] SHARDARRAY_API std::vector<Array> nonzero(const Array& x, Where w = Where::here());
/// [size]: the positions in the flattened array. Throws ShapeError for a negative size.
inline constexpr struct SHARDARRAY_API flatnonzero_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t size, std::int64_t fill_value = 0,
                                 Where w = Where::here()) const;
} flatnonzero{};
/// [size, rank]: the positions as rows. Throws as nonzero.
inline constexpr struct SHARDARRAY_API argwhere_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t size, std::int64_t fill_value = 0,
                                 Where w = Where::here()) const;
} argwhere{};
/// The parts of x along an axis, or the elements of the flattened array, where the vector `condition` is true: `size` of them, with
/// `fill_value` behind. The condition may be shorter. Throws ShapeError for a condition that is no vector or longer, and for a negative
/// size.
inline constexpr struct SHARDARRAY_API compress_fn {
  [[nodiscard]] Array operator()(const Array& condition, const Array& x, std::int64_t size,
                                 std::optional<std::int64_t> axis = std::nullopt, double fill_value = 0,
                                 Where w = Where::here()) const;
} compress{};
/// [size]: the elements of x where `condition`, which has its shape, is true, in order; `fill_value` behind. Throws ShapeError for
/// another shape and a negative size.
inline constexpr struct SHARDARRAY_API extract_fn {
  [[nodiscard]] Array operator()(const Array& condition, const Array& x, std::int64_t size,
                                 double fill_value = 0, Where w = Where::here()) const;
} extract{};

/// The rows and the columns, int32, where a matrix [n, m] has its lower (upper) triangle from diagonal k on. m: n unless given.
/// Throws ShapeError for negative sizes.
[[nodiscard]] SHARDARRAY_API std::pair<Array, Array> tril_indices(
    std::int64_t n, std::int64_t k = 0, std::optional<std::int64_t> m = std::nullopt,
    Where w = Where::here());
[[nodiscard]] SHARDARRAY_API std::pair<Array, Array> triu_indices(
    std::int64_t n, std::int64_t k = 0, std::optional<std::int64_t> m = std::nullopt,
    Where w = Where::here());

// ---------------------------------------------------------------- positions that the program says
/// x with values in front of position `at` along an axis, or of the flattened array. Values take the dtype of x and its shape beside
/// the axis; they are as many as they are long along it. Less dimensions are filled up with 1 in front, and the first one is the
/// axis then, as in NumPy. With a list one value (or one for all) in front of each position of x: `insert(x, {1, 3}, values)`. Negative
/// positions count from the end. Only what moves up moves between devices. Throws ShapeError for a position outside, and for values that do
/// not fit, DTypeError for fractions in whole numbers.
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
/// x without the parts at these positions along an axis, or of the flattened array; negative ones count from the end, one that stands
/// twice counts once. Throws ShapeError for a position outside.
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
/// The positions in each dimension of `shape` of positions in the flattened array; negative ones count from the end, others outside
/// are the nearest. Throws DTypeError for floats and bools, ShapeError for an empty shape.
[[nodiscard]] SHARDARRAY_API std::vector<Array> unravel_index(const Array& index, const Shape& shape,
                                                              Where w = Where::here());
/// The other way: the positions are broadcast to one shape; what lies outside is what the mode makes of it (fill: is wrong). Throws
/// DTypeError for floats and bools, ShapeError unless there is one for each dimension.
[[nodiscard]] SHARDARRAY_API Array ravel_multi_index(const std::vector<Array>& index, const Shape& shape,
                                                     TakeMode mode = TakeMode::clip, Where w = Where::here());

// ---------------------------------------------------------------- along an axis
/// x with the values at an index of their own: out[index[i, j], j] = values[i, j] along axis 0. Values take the dtype of x and are
/// broadcast to the index; sizes beside the axis are those of x, or 1. Negative indices count from the end, others outside
/// are left out; of equal ones the last counts. Throws as take_along_axis, DTypeError for fractions in whole numbers.
inline constexpr struct SHARDARRAY_API put_along_axis_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& index, const Array& values, std::int64_t axis,
                                 Where w = Where::here()) const;
} put_along_axis{};
/// out[i] = choices[index[i]][i], all broadcast to one shape and of one dtype. An index outside means what the mode says. Throws
/// DTypeError for an index that is no integer, ShapeError without choices.
[[nodiscard]] SHARDARRAY_API Array choose(const Array& index, const std::vector<Array>& choices,
                                          TakeMode mode = TakeMode::clip, Where w = Where::here());

// ---------------------------------------------------------------- parts that begin where data says
/// The part of x of shape `sizes` that begins at `starts`, an integer scalar for each dimension; negative ones count from the end. A part
/// that would reach out of x begins earlier. Throws DTypeError for starts that are no integers, ShapeError for another
/// number of them, for starts that are no scalars, and for sizes larger than those of x. Source: jax.lax.dynamic_slice.
[[nodiscard]] SHARDARRAY_API Array dynamic_slice(const Array& x, const std::vector<Array>& starts,
                                                 const Shape& sizes, Where w = Where::here());
/// x with `update` in that part. It takes the dtype of x. Throws as dynamic_slice, DTypeError for fractions in whole numbers.
/// Where x is donated, or nobody reads it afterwards, as in a loop that carries it, that part alone is written.
/// Source: jax.lax.dynamic_update_slice.
[[nodiscard]] SHARDARRAY_API Array dynamic_update_slice(const Array& x, const Array& update,
                                                        const std::vector<Array>& starts,
                                                        Where w = Where::here());
/// The same along one axis. Source: jax.lax.dynamic_slice_in_dim, dynamic_update_slice_in_dim.
[[nodiscard]] SHARDARRAY_API Array dynamic_slice_in_dim(const Array& x, const Array& start, std::int64_t size,
                                                        std::int64_t axis = 0, Where w = Where::here());
[[nodiscard]] SHARDARRAY_API Array dynamic_update_slice_in_dim(const Array& x, const Array& update,
                                                               const Array& start, std::int64_t axis = 0,
                                                               Where w = Where::here());
/// One element along an axis, which stays with size 1 unless `keepdims` is false. Source: jax.lax.dynamic_index_in_dim.
[[nodiscard]] SHARDARRAY_API Array dynamic_index_in_dim(const Array& x, const Array& index,
                                                        std::int64_t axis = 0, bool keepdims = true,
                                                        Where w = Where::here());

}  // namespace shardarray

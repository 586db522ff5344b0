// Ordering and searching: positions by order and value, counting, largest elements, segment sums. NumPy's names, JAX's types and values;
// positions are int32.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "shardarray/ops.h"

namespace shardarray {

// ---------------------------------------------------------------- order
/// Positions along an axis that sort by several keys of one shape, of which the last is the primary one and earlier ones break ties.
/// Throws ShapeError without keys, and for different shapes.
inline constexpr struct SHARDARRAY_API lexsort_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& keys, std::int64_t axis = -1,
                                 Where w = Where::here()) const;
} lexsort{};
/// Positions along an axis that put at `kth` the element sorting would put there, none before it larger and none after it smaller: here
/// those of argsort. Throws as argsort, and ShapeError for a kth out of range. Source: numpy.argpartition.
inline constexpr struct SHARDARRAY_API argpartition_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t kth, std::int64_t axis = -1,
                                 Where w = Where::here()) const;
} argpartition{};
/// The elements along an axis with the one at `kth` where sorting would put it, none before it larger, none after it smaller, NaN last; a
/// negative kth counts from the end. Here they are fully sorted. Throws as argpartition. Source: numpy.partition. (For splitting a tree
/// by a predicate see `partition` in tree_filter.h.)
[[nodiscard]] SHARDARRAY_API Array partition(const Array& x, std::int64_t kth, std::int64_t axis = -1,
                                             Where w = Where::here());
/// The k largest elements along the last axis, descending, and their positions; the first ones among equals. NaN is the largest. Throws
/// ShapeError for a scalar, and for k negative or larger than the axis.
inline constexpr struct SHARDARRAY_API top_k_fn {
  [[nodiscard]] std::pair<Array, Array> operator()(const Array& x, std::int64_t k,
                                                   Where w = Where::here()) const;
} top_k{};

/// Whether the position is before or after equal elements.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class Side : std::uint8_t { left, right };
#pragma GCC diagnostic pop
/// For every element of v, the position in the ascending vector x that keeps it sorted: the number of smaller elements (right: not
/// greater); NaN is the largest. A binary search with as many steps as the size of x has bits. A sharded v moves nothing; with a sharded
/// x every step communicates. Throws ShapeError unless x is a vector.
inline constexpr struct SHARDARRAY_API searchsorted_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& v, Side side = Side::left,
                                 Where w = Where::here()) const;
} searchsorted{};
/// The bin number of every element of x: 0 before the first edge, the number of edges after the last. Edges are ascending or descending;
/// an x on an edge belongs to the bin after it (right: before it). Throws ShapeError unless the edges are a vector.
inline constexpr struct SHARDARRAY_API digitize_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& edges, bool right = false,
                                 Where w = Where::here()) const;
} digitize{};

// ---------------------------------------------------------------- counting
/// [length]: how often each number 0 .. length - 1 occurs in x, or the sum of its weights, which have the shape of x, in their dtype
/// (bool in int32). Negative numbers count as 0, larger ones are ignored, as in JAX. Throws DTypeError for floats, and for more than
/// 2^31 - 1 elements without weights, ShapeError for a negative length and for weights of another shape.
inline constexpr struct SHARDARRAY_API bincount_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t length, Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, const Array& weights, std::int64_t length,
                                 Where w = Where::here()) const;
} bincount{};
/// Options of histogram: `histogram(x, 10, {.range = {{0, 1}}, .density = true})`.
struct HistogramOptions {
  std::optional<std::pair<double, double>> range = std::nullopt;  ///< of the equal bins
  ArrayOption weights =
      {};                ///< of the shape of x: sums them instead of counting, in the dtype promoted with x
  bool density = false;  ///< divides by the total and the bin width: the integral is 1
};
/// A range given after the number of bins: `histogram(x, 10, {{0, 1}})`. It is never empty: `{}` means options.
struct HistogramRange {
  HistogramRange(const std::pair<double, double>& limits) : value(limits) {}
  template <std::convertible_to<std::optional<std::pair<double, double>>> R>
  HistogramRange(const R& limits) : value(limits) {}
  std::optional<std::pair<double, double>> value;
};
/// The number of elements in each bin, floating as in JAX, and the edges, one more; the last bin includes both its edges. Bins are an
/// ascending vector of edges, or a number of equal ones in a range, by default from the smallest to the largest element; if these are
/// equal, extended by half a unit on both sides. Elements out of range are not counted. Infinite elements or NaN without a range give NaN
/// edges and meaningless counts. Throws ShapeError for fewer than two edges, for no elements without a range and for weights of another
/// shape; Error for a range that is not ascending or not finite, and for a range with edges.
inline constexpr struct SHARDARRAY_API histogram_fn {
  [[nodiscard]] std::pair<Array, Array> operator()(const Array& x, const Array& edges,
                                                   const HistogramOptions& o = {},
                                                   Where w = Where::here()) const;
  template <std::integral N>
  [[nodiscard]] std::pair<Array, Array> operator()(const Array& x, N bins, const HistogramOptions& o = {},
                                                   Where w = Where::here()) const {
    return equal_bins(x, to_int64(bins), o, w);
  }
  template <std::integral N>
  [[nodiscard]] std::pair<Array, Array> operator()(const Array& x, N bins, const HistogramRange& range,
                                                   Where w = Where::here()) const {
    return equal_bins(x, to_int64(bins), {.range = range.value}, w);
  }

 private:
  [[nodiscard]] std::pair<Array, Array> equal_bins(const Array& x, std::int64_t bins,
                                                   const HistogramOptions& o, Where w) const;
} histogram{};

/// The edges that histogram uses for a number of bins: [bins + 1]. Throws as it does.
[[nodiscard]] SHARDARRAY_API Array histogram_bin_edges(
    const Array& x, std::int64_t bins = 10,
    const std::optional<std::pair<double, double>>& range = std::nullopt, Where w = Where::here());
/// The number of rows of x [n, d] in each bin given by d vectors of edges, int32: of shape (edges - 1).., bins as for histogram. Throws
/// ShapeError unless x is a matrix, for another number of vectors, and fewer than two edges.
[[nodiscard]] SHARDARRAY_API Array histogramdd(const Array& x, const std::vector<Array>& edges,
                                               Where w = Where::here());
/// Weighted by a vector [n]: sums in their floating dtype. Throws ShapeError for weights of another shape.
[[nodiscard]] SHARDARRAY_API Array histogramdd(const Array& x, const std::vector<Array>& edges,
                                               const Array& weights, Where w = Where::here());
/// The same for points (x[i], y[i]). Throws ShapeError unless both have the same shape.
[[nodiscard]] SHARDARRAY_API Array histogram2d(const Array& x, const Array& y, const Array& x_edges,
                                               const Array& y_edges, Where w = Where::here());

// ---------------------------------------------------------------- positions
/// Reads elements at individual integer indices: out[i, j] = x[index[i, j], j] along axis 0. Other sizes are equal, or 1 and broadcast.
/// Negative indices count from the end; out of range as take. Throws DTypeError unless the index is an integer, ShapeError for another
/// rank.
inline constexpr struct SHARDARRAY_API take_along_axis_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& index, std::int64_t axis,
                                 TakeMode mode = TakeMode::fill, Where w = Where::here()) const;
} take_along_axis{};

// ---------------------------------------------------------------- segments
// Row i of x belongs to segment `ids[i]`, an integer; the result has `count` rows. Rows with other ids, including negative ones, are
// ignored. Throw DTypeError for non-integer ids, ShapeError unless they are a vector as long as x, and for a negative count.
/// The sum of each segment, 0 if empty, in the dtype of x.
inline constexpr struct SHARDARRAY_API segment_sum_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& ids, std::int64_t count,
                                 Where w = Where::here()) const;
} segment_sum{};
/// The product, 1 if empty. Its gradient compares every row with every segment, and stores x once for each: use it for few segments.
inline constexpr struct SHARDARRAY_API segment_prod_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& ids, std::int64_t count,
                                 Where w = Where::here()) const;
} segment_prod{};
/// The largest (smallest) element; the lowest (highest) value of the dtype if empty, for floats -inf (inf). Equal elements share the
/// gradient.
inline constexpr struct SHARDARRAY_API segment_max_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& ids, std::int64_t count,
                                 Where w = Where::here()) const;
} segment_max{};
inline constexpr struct SHARDARRAY_API segment_min_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& ids, std::int64_t count,
                                 Where w = Where::here()) const;
} segment_min{};

}  // namespace shardarray

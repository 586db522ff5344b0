// Positions by order and by value: searching, counting, the largest elements, sums of segments. numpy's names, JAX's types and
// values; positions are int32.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "shardarray/ops.h"

namespace shardarray {

// ---------------------------------------------------------------- order
/// The positions along an axis that sort by several keys of one shape, the last one first: where it is equal, the one before
/// decides. Throws ShapeError without keys, and for different shapes.
inline constexpr struct SHARDARRAY_API lexsort_fn {
  [[nodiscard]] Array operator()(const std::vector<Array>& keys, std::int64_t axis = -1,
                                 Where w = Where::here()) const;
} lexsort{};
/// Positions along an axis so that at `kth` stands the element that sorting puts there, none in front of it is larger and none behind it
/// smaller: here those of argsort. Throws as argsort, and ShapeError where the axis has no such place. Source: numpy.argpartition.
inline constexpr struct SHARDARRAY_API argpartition_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t kth, std::int64_t axis = -1,
                                 Where w = Where::here()) const;
} argpartition{};
/// The elements along an axis with the one at `kth` where sorting puts it, none in front of it larger, none behind it smaller, NaN last;
/// a negative kth counts from the end. Here they are all sorted. Throws as argpartition. Source: numpy.partition. (A tree with a
/// predicate is split by the `partition` of tree_filter.h.)
[[nodiscard]] SHARDARRAY_API Array partition(const Array& x, std::int64_t kth, std::int64_t axis = -1,
                                             Where w = Where::here());
/// The k largest elements along the last axis, falling, and their positions; of equals the first ones. NaN is the largest. Throws
/// ShapeError for a scalar, and for k that is negative or more than there are.
inline constexpr struct SHARDARRAY_API top_k_fn {
  [[nodiscard]] std::pair<Array, Array> operator()(const Array& x, std::int64_t k,
                                                   Where w = Where::here()) const;
} top_k{};

/// Where an equal element stands: the position is in front of it or behind it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class Side : std::uint8_t { left, right };
#pragma GCC diagnostic pop
/// For every element of v the position in the rising vector x where it keeps the order: the number of elements that are less (right:
/// not greater); NaN is the largest. A binary search of as many steps as the size of x has bits. v may be cut and nothing moves; of an
/// x that is cut every step does. Throws ShapeError for what is no vector.
inline constexpr struct SHARDARRAY_API searchsorted_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& v, Side side = Side::left,
                                 Where w = Where::here()) const;
} searchsorted{};
/// The number of the bin of every element of x: 0 in front of the first edge, their number behind the last one. Edges rise or fall;
/// x on an edge belongs to the bin behind it (right: in front of it). Throws ShapeError for what is no vector.
inline constexpr struct SHARDARRAY_API digitize_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& edges, bool right = false,
                                 Where w = Where::here()) const;
} digitize{};

// ---------------------------------------------------------------- counting
/// [length]: how often each number 0 .. length - 1 stands in x, or the sum of its weights, which have the shape of x, in their
/// dtype (of bool in int32). Negative numbers count as 0, larger ones not at all, as in JAX. Throws DTypeError for floats, and for
/// more than 2^31 - 1 elements without weights, ShapeError for a negative length and for other weights.
inline constexpr struct SHARDARRAY_API bincount_fn {
  [[nodiscard]] Array operator()(const Array& x, std::int64_t length, Where w = Where::here()) const;
  [[nodiscard]] Array operator()(const Array& x, const Array& weights, std::int64_t length,
                                 Where w = Where::here()) const;
} bincount{};
/// Options of histogram: `histogram(x, 10, {.range = {{0, 1}}, .density = true})`.
struct HistogramOptions {
  std::optional<std::pair<double, double>> range = std::nullopt;  ///< of equal bins
  ArrayOption weights =
      {};  ///< of the shape of x: their sums instead of counts, in the dtype that x has with them
  bool density = false;  ///< divided by their total and the width of the bin: the integral is 1
};
/// A range behind the number of bins: `histogram(x, 10, {{0, 1}})`. There is none of nothing: `{}` are options.
struct HistogramRange {
  HistogramRange(const std::pair<double, double>& limits) : value(limits) {}
  template <std::convertible_to<std::optional<std::pair<double, double>>> R>
  HistogramRange(const R& limits) : value(limits) {}
  std::optional<std::pair<double, double>> value;
};
/// How many elements lie in each bin, floating as in JAX, and the edges, one more; the last bin has both its edges. Bins are a rising
/// vector of edges, or a number of equal ones in a range: the one between the least and the largest element unless given, where
/// these are equal, half a unit on both sides. What lies outside counts nowhere. Of infinite elements or NaN without a range there
/// are edges that are NaN, and counts without a meaning. Throws ShapeError for fewer than two edges, and without a range of no
/// elements and for other weights; Error for a range that does not rise, or is not finite, and for one beside edges.
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

/// The edges that histogram makes of a number of bins: [bins + 1]. Throws as it does.
[[nodiscard]] SHARDARRAY_API Array histogram_bin_edges(
    const Array& x, std::int64_t bins = 10,
    const std::optional<std::pair<double, double>>& range = std::nullopt, Where w = Where::here());
/// How many rows of x [n, d] lie in each bin of d vectors of edges, int32: of shape (edges - 1).., bins as of histogram. Throws
/// ShapeError for what is no matrix, another number of vectors, and fewer than two edges.
[[nodiscard]] SHARDARRAY_API Array histogramdd(const Array& x, const std::vector<Array>& edges,
                                               Where w = Where::here());
/// Weighted by a vector [n]: their sums, in their floating dtype. Throws ShapeError for other weights.
[[nodiscard]] SHARDARRAY_API Array histogramdd(const Array& x, const std::vector<Array>& edges,
                                               const Array& weights, Where w = Where::here());
/// The same of points (x[i], y[i]). Throws ShapeError unless both have one shape.
[[nodiscard]] SHARDARRAY_API Array histogram2d(const Array& x, const Array& y, const Array& x_edges,
                                               const Array& y_edges, Where w = Where::here());

// ---------------------------------------------------------------- positions
/// Elements at an integer index of their own: out[i, j] = x[index[i, j], j] along axis 0. The other sizes are equal, or 1 and
/// broadcast. Negative indices count from the end; outside as take. Throws DTypeError for an index that is no integer, ShapeError for
/// another rank.
inline constexpr struct SHARDARRAY_API take_along_axis_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& index, std::int64_t axis,
                                 TakeMode mode = TakeMode::fill, Where w = Where::here()) const;
} take_along_axis{};

// ---------------------------------------------------------------- segments
// Row i of x belongs to segment `ids[i]`, an integer; the result has `count` rows. Rows of other numbers, negative ones too, belong to
// none. Throw DTypeError for ids that are no integers, ShapeError unless they are a vector as long as x, and for a negative count.
/// The sum of each segment, 0 of nothing, in the dtype of x.
inline constexpr struct SHARDARRAY_API segment_sum_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& ids, std::int64_t count,
                                 Where w = Where::here()) const;
} segment_sum{};
/// The product, 1 of nothing. Its gradient compares every row with every segment, and stores x once for each: for few segments.
inline constexpr struct SHARDARRAY_API segment_prod_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& ids, std::int64_t count,
                                 Where w = Where::here()) const;
} segment_prod{};
/// The largest (smallest) element; of nothing the lowest (highest) value of the dtype, of floats -inf (inf). Equal elements share
/// the gradient.
inline constexpr struct SHARDARRAY_API segment_max_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& ids, std::int64_t count,
                                 Where w = Where::here()) const;
} segment_max{};
inline constexpr struct SHARDARRAY_API segment_min_fn {
  [[nodiscard]] Array operator()(const Array& x, const Array& ids, std::int64_t count,
                                 Where w = Where::here()) const;
} segment_min{};

}  // namespace shardarray

// Searching, counting and top_k, composed of sort, take and scatter.
#include "shardarray/ordering.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/count_text.h"
#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "ops/combined_rows.h"

namespace shardarray {

static void need_vector(const char* function, const char* what, const Array& x) {
  if (type_of(x, function).shape.size() != 1)
    throw ShapeError(fmt::format("{}: the {} are {}. They are a vector. Use ravel, or vmap for several.",
                                 current_function(function), what, to_string(type_of(x))));
}
static Array flattened(const Array& x) { return primitive::reshape(x, {x.size()}); }

// ---------------------------------------------------------------- order
// Stable sorts by each key, the last key last.
Array lexsort_fn::operator()(const std::vector<Array>& keys, std::int64_t axis, Where w) const {
  const Site site(w, "lexsort");
  if (keys.empty()) throw ShapeError("lexsort: no keys. The last one is sorted by first. Give at least one.");
  const Shape& shape = type_of(keys[0], "lexsort").shape;
  for (const Array& key : keys)
    if (!(type_of(key, "lexsort").shape == shape))
      throw ShapeError(fmt::format("lexsort: shapes {} and {}. All keys have one shape. Broadcast one.",
                                   to_string(shape), to_string(key.shape())));
  const std::size_t dim = api::axis_of("lexsort", axis, shape);
  Array order = primitive::iota(shape, dim, DType::int32);
  for (std::size_t k = 0; k < keys.size(); k++) {
    const Array operands[] = {k == 0 ? keys[k] : primitive::take_along(keys[k], order, dim), order};
    order = primitive::sort(operands, dim)[1];
  }
  return order;
}
static void need_place(const char* function, const Array& x, std::int64_t kth, std::int64_t axis) {
  const Shape& shape = type_of(x, function).shape;
  const std::int64_t n = shape[api::axis_of(function, axis, shape)];
  if (n == 0)
    throw ShapeError(
        fmt::format("{}: the axis has no elements. One of them is put in its place. Give more.", function));
  if (kth < -n || kth >= n)
    throw ShapeError(fmt::format("{}: place {} of {}. Places are in {} .. {}. Give one of them.", function,
                                 kth, count_text(n, "element"), -n, n - 1));
}
Array argpartition_fn::operator()(const Array& x, std::int64_t kth, std::int64_t axis, Where w) const {
  const Site site(w, "argpartition");
  need_place("argpartition", x, kth, axis);
  return argsort(x, axis);
}
Array partition(const Array& x, std::int64_t kth, std::int64_t axis, Where w) {
  const Site site(w, "partition");
  need_place("partition", x, kth, axis);
  return sort(x, axis);
}

// The k largest elements are in the k groups of neighbours with the largest maxima, or in the remainder after all groups: any other group
// has k elements before all of its own. Returns the group size that minimizes sorting, preferably near the optimum and without remainder; 1
// if it does not pay.
static std::int64_t group_size(std::int64_t n, std::int64_t k) {
  if (k == 0) return 1;
  const auto best = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n) / static_cast<double>(k)));
  const auto sorted = [&](std::int64_t s) { return n / s + k * s + n % s; };
  std::int64_t size = std::max<std::int64_t>(best, 1);
  for (std::int64_t s = std::max<std::int64_t>(2, best / 2); s <= 2 * best; s++)
    if (n % s == 0 && (n % size != 0 || sorted(s) < sorted(size))) size = s;
  return n / size > k && sorted(size) < n / 2 ? size : 1;
}
// Keeps only the elements of those groups in lines [.., n], in order, and the same of `positions`.
static void keep_groups(Array& x, Array& positions, std::int64_t k) {
  const Shape lines = x.shape();
  const std::size_t dim = lines.size() - 1;
  const std::int64_t n = lines[dim], s = group_size(n, k), count = n / s;
  if (s == 1 || x.dtype() == DType::bool_ || is_complex(x.dtype())) return;
  Shape groups = lines, kept = lines;
  groups[dim] = count;
  const Shape numbers = groups;
  groups.push_back(s);
  kept[dim] = k * s;
  const auto grouped = [&](const Array& y) {
    return primitive::reshape(n % s == 0 ? y : primitive::slice_dim(y, dim, 0, count * s), groups);
  };
  const Array largest =
      primitive::reduce(Reducer::max, grouped(primitive::unary(op_stop_gradient, x)), {std::ssize(numbers)});
  const Array backwards[] = {primitive::reverse(largest, {-1}),
                             primitive::reverse(primitive::iota(numbers, dim, DType::int32), {-1})};
  const Array chosen = primitive::slice_dim(primitive::sort(backwards, dim)[1], dim, count - k, count);
  const Array in_order = primitive::sort(std::span(&chosen, 1), dim)[0];
  for (Array* const y : {&x, &positions}) {
    const Array parts[] = {
        primitive::reshape(primitive::take(grouped(*y), in_order, static_cast<std::int64_t>(dim), 1), kept),
        primitive::slice_dim(*y, dim, count * s, n)};
    *y = n % s == 0 ? parts[0] : primitive::concatenate(parts, dim);
  }
}

std::pair<Array, Array> top_k_fn::operator()(const Array& x, std::int64_t k, Where w) const {
  const Site site(w, "top_k");
  const Shape& shape = type_of(x, "top_k").shape;
  const std::size_t dim = api::axis_of("top_k", -1, shape);
  if (k < 0 || k > shape[dim])
    throw ShapeError(fmt::format("top_k: k is {} of {}. It is not negative and not more. Give a smaller one.",
                                 k, count_text(shape[dim], "element")));
  // First within blocks, then in pairs of neighbouring blocks: if the dimension is sharded, only the largest elements of each tile move.
  // Shorter blocks would take longer to sort than the whole.
  std::int64_t blocks = 1;
  const std::int64_t n = shape[dim], least = std::max<std::int64_t>(4 * k, 4096);
  while (blocks < 64 && n % (2 * blocks) == 0 && n / (2 * blocks) >= least) blocks *= 2;
  Arrays best{x, primitive::iota(shape, dim, DType::int32)};
  const auto each = [&](const auto& f) {
    for (Array& y : best) y = f(y);
  };
  const auto grouped = [&](std::initializer_list<std::int64_t> last) {
    Shape to = shape;
    to.pop_back();
    for (const std::int64_t size : last) to.push_back(size);
    each([&](const Array& y) { return primitive::reshape(y, to); });
  };
  // Sorts ascending with earlier elements after their equals, so that of equal ones the first counts as larger. This takes one initial
  // reversal.
  const auto keep_largest = [&](std::int64_t of) {
    best = primitive::sort(best, dim + 1);
    each([&](const Array& y) { return primitive::slice_dim(y, dim + 1, of - k, of); });
  };
  grouped({blocks, n / blocks});
  keep_groups(best[0], best[1], k);
  each([](const Array& y) { return primitive::reverse(y, {-1}); });
  keep_largest(best[0].shape()[dim + 1]);
  for (; blocks > 1; blocks /= 2) {
    grouped({blocks / 2, 2, k});
    each([](const Array& y) { return primitive::reverse(y, {-2}); });
    grouped({blocks / 2, 2 * k});
    keep_largest(2 * k);
  }
  grouped({k});
  each([](const Array& y) { return primitive::reverse(y, {-1}); });
  return {best[0], best[1]};
}

// ---------------------------------------------------------------- searching
// Whether an element of the vector is ordered before v. NaN comes last.
static Array in_front(const Array& element, const Array& v, Side side) {
  Array before = primitive::binary(side == Side::left ? op_lt : op_le, element, v);
  if (!is_floating(v.dtype())) return before;
  const Array is_number = primitive::binary(op_eq, element, element),
              v_is_nan = primitive::binary(op_ne, v, v);
  const Array beside_nan = side == Side::left ? primitive::binary(op_and, v_is_nan, is_number) : v_is_nan;
  return primitive::binary(op_or, before, beside_nan);
}
Array searchsorted_fn::operator()(const Array& x, const Array& v, Side side, Where w) const {
  const Site site(w, "searchsorted");
  need_vector("searchsorted", "elements", x);
  const WeakType t = api::counted(api::promoted("searchsorted", {&x, &v}));
  const Array table = api::cast(x, t), wanted = api::cast(v, t);
  const std::int64_t n = x.shape()[0];
  const Shape& shape = wanted.shape();
  Array at = zeros_of({shape, DType::int32, false});  // number of elements before v
  if (n - 1 > (std::int64_t{1} << 30))
    throw DTypeError(fmt::format(
        "{}: the positions among {} elements do not fit into int32. A position is a value of its dtype. "
        "Search in parts.",
        current_function("searchsorted"), n));
  const std::uint64_t longest = std::bit_floor(static_cast<std::uint64_t>(n));  // 0 for an empty vector
  for (auto step = static_cast<std::int64_t>(longest); step > 0; step /= 2) {
    const Array next = primitive::add(at, primitive::like_whole(at, step));
    const Array fits = primitive::binary(op_le, next, primitive::like_whole(at, n));
    const Array probe = primitive::sub(primitive::binary(op_min, next, primitive::like_whole(at, n)),
                                       primitive::like_whole(at, 1));
    const Array element = primitive::take(table, probe, 0, static_cast<std::int64_t>(shape.size()));
    at = primitive::select(primitive::binary(op_and, fits, in_front(element, wanted, side)), next, at);
  }
  return at;
}
Array digitize_fn::operator()(const Array& x, const Array& edges, bool right, Where w) const {
  const Site site(w, "digitize");
  need_vector("digitize", "edges", edges);
  type_of(x, "digitize");
  const Side side = right ? Side::left : Side::right;
  const std::int64_t n = edges.shape()[0];
  if (n < 2) return searchsorted(edges, x, side);
  const auto edge = [&](std::int64_t k) { return primitive::element(edges, k, {}); };
  const Array rises = primitive::binary(op_le, edge(0), edge(n - 1));
  const Array up = searchsorted(edges, x, side),
              down = searchsorted(primitive::reverse(edges, {-1}), x, side);
  return primitive::select(primitive::broadcast_to(rises, up.shape()), up,
                           primitive::sub(primitive::like_whole(down, n), down));
}

// ---------------------------------------------------------------- counting
// [length]: the sums of updates by row, in their dtype; out-of-range rows are dropped.
static Array counted_by(const Array& rows, const Array& updates, std::int64_t length) {
  const DType t = updates.dtype(), wide = api::computed(t);
  return primitive::cast(
      primitive::scatter(flattened(rows), primitive::cast(flattened(updates), wide), 0, 1, length), t);
}
static Array counted_numbers(const Array& x, const Array& weights, std::int64_t length) {
  if (!is_integer(type_of(x, "bincount").dtype) && x.dtype() != DType::bool_)
    api::refuse_dtype("bincount", x, "It counts integers and bool");
  if (length < 0)
    throw ShapeError(fmt::format(
        "bincount: length {}. The number of numbers is not negative. Give how many are counted.", length));
  Array rows = api::cast(x, api::counted(api::weak_type_of(x, "bincount")));
  if (is_signed_integer(rows.dtype())) rows = primitive::binary(op_max, rows, primitive::like_whole(rows, 0));
  return counted_by(rows, weights, length);
}
Array bincount_fn::operator()(const Array& x, std::int64_t length, Where w) const {
  const Site site(w, "bincount");
  if (const std::int64_t n = num_elements(type_of(x, "bincount").shape);
      n > std::numeric_limits<std::int32_t>::max())
    throw DTypeError(fmt::format(
        "bincount: of {} elements. Counts are int32, and one of them may not fit. Count in parts.", n));
  return counted_numbers(x, primitive::full(type_of(x, "bincount").shape, DType::int32, 1), length);
}
Array bincount_fn::operator()(const Array& x, const Array& weights, std::int64_t length, Where w) const {
  const Site site(w, "bincount");
  if (!(type_of(weights, "bincount").shape == type_of(x, "bincount").shape))
    throw ShapeError(fmt::format("bincount: weights {} of {}. Every element has one. Broadcast them.",
                                 to_string(type_of(weights)), to_string(type_of(x))));
  return counted_numbers(x, api::cast(weights, api::counted(api::weak_type_of(weights, "bincount"))), length);
}
// The weight of each flattened element; without weights integer 1, because a float32 stops counting at 2^24.
static Array counted_weights(const Array& x, const HistogramOptions& o, WeakType t) {
  if (!o.weights.array) return primitive::full({x.size()}, DType::int32, 1);
  const Array& given = *o.weights.array;
  if (!(given.shape() == x.shape()))
    throw ShapeError(fmt::format("histogram: weights {} of {}. Every element has one. Broadcast them.",
                                 to_string(type_of(given)), to_string(type_of(x))));
  return flattened(primitive::cast(api::cast(given, t), api::computed(t.dtype)));
}
std::pair<Array, Array> histogram_fn::operator()(const Array& x, const Array& edges,
                                                 const HistogramOptions& o, Where w) const {
  const Site site(w, "histogram");
  if (o.range)
    throw Error("histogram: a range was given beside edges. Edges are the bins. Leave one of them out.");
  need_vector("histogram", "edges", edges);
  const std::int64_t n = edges.shape()[0];
  if (n < 2)
    throw ShapeError(fmt::format("histogram: {}. A bin has two. Give the edges, or a number of bins.",
                                 count_text(n, "edge")));
  const Array& weighted = o.weights.array ? *o.weights.array : x;
  const WeakType t = api::to_inexact(api::promoted("histogram", {&x, &edges, &weighted}));
  const Array values = flattened(api::cast(x, t)), borders = api::cast(edges, t);
  const Array end = primitive::broadcast_to(primitive::reshape(primitive::slice(borders, {n - 1}, {n}), {}),
                                            values.shape());
  const Array behind = searchsorted(borders, values, Side::right);
  const Array bin = primitive::sub(
      primitive::select(primitive::binary(op_eq, values, end), primitive::like_whole(behind, n - 1), behind),
      primitive::like_whole(behind, 1));
  Array counts = primitive::scatter(bin, counted_weights(x, o, t), 0, 1, n - 1);
  if (o.density) {
    const DType wide = api::computed(t.dtype);
    const Array total = primitive::cast(sum(counts), wide), part = primitive::cast(counts, wide);
    const Array ends = primitive::cast(borders, wide);
    const Array width =
        primitive::sub(primitive::slice(ends, {1}, {n}), primitive::slice(ends, {0}, {n - 1}));
    counts = primitive::div(primitive::div(part, width), primitive::broadcast_to(total, part.shape()));
  }
  return {primitive::cast(counts, t.dtype), primitive::cast(borders, t.dtype)};
}
std::pair<Array, Array> histogram_fn::equal_bins(const Array& x, std::int64_t bins, const HistogramOptions& o,
                                                 Where w) const {
  const Site site(w, "histogram");
  const std::optional<std::pair<double, double>>& range = o.range;
  const Type& t = type_of(x, "histogram");
  if (bins < 1)
    throw ShapeError(
        fmt::format("histogram: {} bins. There is at least one. Give how many there are.", bins));
  if (range && !(range->first <= range->second))
    throw Error(fmt::format("histogram: the range from {} to {}. It rises. Change both.", range->first,
                            range->second));
  if (range && !(std::isfinite(range->first) && std::isfinite(range->second)))
    throw Error(fmt::format("histogram: the range from {} to {}. It is finite. Change both.", range->first,
                            range->second));
  if (!range && num_elements(t.shape) == 0)
    throw ShapeError(fmt::format(
        "histogram: {} has no elements and no range. The bins lie between two numbers. Give a range.",
        to_string(t)));
  const WeakType common =
      o.weights.array ? api::promoted("histogram", {&x, &*o.weights.array}) : WeakType{t.dtype, false};
  const DType inexact_type = api::to_inexact(common).dtype;
  const auto number = [&](double v) { return primitive::full({}, inexact_type, v); };
  Array low =
      range ? number(range->first) : primitive::cast(min(primitive::cast(x, inexact_type)), inexact_type);
  Array high =
      range ? number(range->second) : primitive::cast(max(primitive::cast(x, inexact_type)), inexact_type);
  const Array is_point = primitive::binary(op_eq, low, high);
  const Array half = primitive::select(is_point, number(0.5), number(0));
  low = primitive::sub(low, half);
  high = primitive::add(high, half);
  // like linspace: low (1 - part) + high part
  const Shape shape{add_sizes(bins, 1)};
  const DType wide = api::computed(inexact_type);
  const Array k = primitive::cast(primitive::iota(shape, 0, api::position_type(shape)), wide);
  const Array part = primitive::div(k, primitive::like(k, static_cast<double>(bins)));
  const auto everywhere = [&](const Array& v) {
    return primitive::broadcast_to(primitive::cast(v, wide), shape);
  };
  const Array between =
      primitive::add(primitive::mul(everywhere(low), primitive::sub(primitive::like(k, 1), part)),
                     primitive::mul(everywhere(high), part));
  return (*this)(x, primitive::cast(between, inexact_type), {.weights = o.weights, .density = o.density});
}

// ---------------------------------------------------------------- segments
static void check_segments(const char* function, const Array& x, const Array& ids, std::int64_t count) {
  const Shape& shape = type_of(x, function).shape;
  if (!is_integer(type_of(ids, function).dtype)) api::refuse_dtype(function, ids, "Segments are integers");
  if (shape.empty() || !(ids.shape() == Shape{shape[0]}))
    throw ShapeError(fmt::format("{}: ids {} of {}. Every row has one. Give a vector that is as long.",
                                 function, to_string(type_of(ids)), to_string(type_of(x))));
  if (count < 0)
    throw ShapeError(fmt::format("{}: {} segments. The number is not negative. Give how many there are.",
                                 function, count));
}
static Array combined_segments(const char* function, Reducer r, const Array& x, const Array& ids,
                               std::int64_t count) {
  check_segments(function, x, ids, count);
  if (x.dtype() == DType::bool_) api::refuse_dtype(function, x, "It takes numbers");
  const DType t = api::weak_type_of(x, function).dtype;
  return primitive::cast(combined_rows(r, ids, primitive::cast(x, api::computed(t)), count), t);
}
Array segment_sum_fn::operator()(const Array& x, const Array& ids, std::int64_t count, Where w) const {
  const Site site(w, "segment_sum");
  return combined_segments("segment_sum", Reducer::sum, x, ids, count);
}
Array segment_prod_fn::operator()(const Array& x, const Array& ids, std::int64_t count, Where w) const {
  const Site site(w, "segment_prod");
  return combined_segments("segment_prod", Reducer::prod, x, ids, count);
}
Array segment_max_fn::operator()(const Array& x, const Array& ids, std::int64_t count, Where w) const {
  const Site site(w, "segment_max");
  return combined_segments("segment_max", Reducer::max, x, ids, count);
}
Array segment_min_fn::operator()(const Array& x, const Array& ids, std::int64_t count, Where w) const {
  const Site site(w, "segment_min");
  return combined_segments("segment_min", Reducer::min, x, ids, count);
}

}  // namespace shardarray

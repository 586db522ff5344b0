// Repeating, joining and splitting, composed of reshape, broadcast, concatenate and slice.
#include "shardarray/rearrange.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/count_text.h"
#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "shardarray/ordering.h"

namespace shardarray {

// ---------------------------------------------------------------- repeating
static void need_repeats(const char* function, std::int64_t n) {
  if (n < 0)
    throw ShapeError(
        fmt::format("{}: {} times. The number is not negative. Use flip to reverse.", function, n));
}
// [n, m] is reshaped to [1, n, 1, m] and broadcast to [a, n, b, m].
Array tile_fn::operator()(const Array& x, const Shape& repeats, Where w) const {
  const Site site(w, "tile");
  Shape from = type_of(x, "tile").shape, by = repeats;
  for (std::int64_t n : by) need_repeats("tile", n);
  while (from.size() < by.size()) from.insert(0, 1);
  while (by.size() < from.size()) by.insert(0, 1);
  Shape apart, wide, result;
  for (std::size_t d = 0; d < from.size(); d++) {
    for (std::int64_t size : {std::int64_t{1}, from[d]}) apart.push_back(size);
    for (std::int64_t size : {by[d], from[d]}) wide.push_back(size);
    result.push_back(mul_sizes(by[d], from[d]));
  }
  if (std::find(result.begin(), result.end(), 0) != result.end())  // the repeats alone might overflow
    return zeros_of({result, type_of(x).dtype, type_of(x).weak});
  return primitive::reshape(primitive::broadcast_to(primitive::reshape(x, apart), wide), result);
}
Array repeat_fn::operator()(const Array& x, std::int64_t n, std::optional<std::int64_t> axis, Where w) const {
  const Site site(w, "repeat");
  need_repeats("repeat", n);
  const Array y = axis ? x : primitive::reshape(x, {num_elements(type_of(x, "repeat").shape)});
  Shape shape = type_of(y, "repeat").shape;
  const std::size_t dim = api::axis_of("repeat", axis.value_or(0), shape);
  Shape apart = shape, wide;
  apart.insert(dim + 1, 1);
  wide = apart;
  wide[dim + 1] = n;
  shape[dim] = mul_sizes(shape[dim], n);
  return primitive::reshape(primitive::broadcast_to(primitive::reshape(y, apart), wide), shape);
}
// The operand and axis of a repeat with counts; flattened unless an axis is given.
static std::pair<Array, std::size_t> repeated_along(const Array& x, std::optional<std::int64_t> axis,
                                                    std::int64_t counts) {
  const Array y = axis ? x : primitive::reshape(x, {num_elements(type_of(x, "repeat").shape)});
  const std::size_t dim = api::axis_of("repeat", axis.value_or(0), type_of(y, "repeat").shape);
  if (counts != y.shape()[dim] && counts != 1)
    throw ShapeError(
        fmt::format("repeat: {} for {} along axis {}. Every element has one, or all have the same. Give as "
                    "many, or one number.",
                    count_text(counts, "count"), to_string(type_of(y)), dim));
  return {y, dim};
}
// Adjacent elements with equal counts form one piece.
Array repeat_fn::operator()(const Array& x, const Shape& counts, std::optional<std::int64_t> axis,
                            Where w) const {
  const Site site(w, "repeat");
  const auto [y, dim] = repeated_along(x, axis, std::ssize(counts));
  for (std::int64_t n : counts) need_repeats("repeat", n);
  const auto along = static_cast<std::int64_t>(dim);
  if (counts.size() == 1) return repeat(y, counts[0], along);
  std::vector<Array> pieces;
  for (std::size_t k = 0, end; k < counts.size(); k = end) {
    end = k + 1;
    while (end < counts.size() && counts[end] == counts[k]) end++;
    pieces.push_back(
        repeat(primitive::slice_dim(y, dim, static_cast<std::int64_t>(k), static_cast<std::int64_t>(end)),
               counts[k], along));
  }
  return pieces.empty() ? y : primitive::concatenate(pieces, dim);
}
static std::int64_t total_of(const Array& counts) {
  Node* const n = counts.node();
  if (!n->evaluated() && trace_state().is_open(n->trace))
    throw TraceError(fmt::format(
        "repeat: the counts {} have no values while the function is traced. The result is as long as "
        "they say. Give total_repeat_length.",
        to_string(n->type())));
  const Array wide = primitive::cast(counts, DType::int64);
  return sum(primitive::binary(op_max, wide, primitive::like(wide, 0))).item<std::int64_t>();
}
// Element i of the result is the first whose cumulative count exceeds i.
Array repeat_fn::operator()(const Array& x, const Array& counts, const RepeatOptions& o, Where w) const {
  const Site site(w, "repeat");
  const Shape& mine = type_of(counts, "repeat").shape;
  if (std::int64_t n = 0; !o.total_repeat_length && primitive::is_literal_int(counts, n))
    return (*this)(x, n, o.axis, w);
  if (!is_integer(counts.dtype())) api::refuse_dtype("repeat", counts, "Counts are integers");
  if (mine.size() > 1)
    throw ShapeError(fmt::format("repeat: counts {}. They are a vector, or one number. Use ravel.",
                                 to_string(type_of(counts))));
  const auto [y, dim] = repeated_along(x, o.axis, num_elements(mine));
  const Shape each{y.shape()[dim]};
  const Array given = primitive::broadcast_to(primitive::reshape(counts, {num_elements(mine)}), each);
  const std::int64_t total = o.total_repeat_length ? *o.total_repeat_length : total_of(given);
  need_repeats("repeat", total);
  if (each[0] == 0 && total > 0)
    throw ShapeError(
        fmt::format("repeat: {} has no elements along axis {}, and {} are asked for. There is none to "
                    "repeat. Leave the length out.",
                    to_string(type_of(y)), dim, total));
  // clamped to `total` positions, however large the counts are
  const DType t = api::position_type({mul_sizes(total, std::max<std::int64_t>(each[0], 1))});
  Array times = primitive::cast(given, DType::int64);
  times = primitive::binary(op_max, times, primitive::like_whole(times, 0));
  times = primitive::cast(primitive::binary(op_min, times, primitive::like_whole(times, total)), t);
  const Array last = cumsum(times, 0);
  // How many elements end at or before each position.
  const Array at = cumsum(primitive::scatter(last, primitive::like_whole(last, 1), 0, 1, total), 0);
  return take(
      y, primitive::binary(op_min, at, primitive::like_whole(at, std::max<std::int64_t>(each[0] - 1, 0))),
      static_cast<std::int64_t>(dim), TakeMode::clip);
}

// ---------------------------------------------------------------- lax.pad
// Inserts `interior` copies of the value between the elements of a dimension.
static Array spread_out(const Array& x, std::size_t dim, std::int64_t interior, const Array& value) {
  const std::int64_t n = x.shape()[dim];
  if (interior == 0 || n < 2) return x;
  Shape apart = x.shape(), merged = apart;
  apart.insert(dim + 1, 1);
  std::vector<std::pair<std::int64_t, std::int64_t>> behind(apart.size(), {0, 0});
  behind[dim + 1].second = interior;
  merged[dim] = mul_sizes(n, add_sizes(interior, 1));
  const Array wide = primitive::reshape(pad(primitive::reshape(x, apart), behind, value), merged);
  return primitive::slice_dim(wide, dim, 0, merged[dim] - interior);
}
// Padding by a scalar.
static Array padded_generally(const Array& x, const std::vector<PadWidths>& widths, const Array& value) {
  Array y = x;
  std::vector<std::pair<std::int64_t, std::int64_t>> around;
  for (std::size_t d = 0; d < widths.size(); d++) {
    y = spread_out(y, d, widths[d].interior, value);
    const std::int64_t n = y.shape()[d], front = std::max<std::int64_t>(-widths[d].low, 0),
                       back = std::max<std::int64_t>(-widths[d].high, 0);
    around.emplace_back(std::max<std::int64_t>(widths[d].low, 0), std::max<std::int64_t>(widths[d].high, 0));
    if (add_sizes(front, back) <= n) {
      y = primitive::slice_dim(y, d, front, n - back);
      continue;
    }
    // a negative width removes more than n elements: it also removes padding of the other end
    if (add_sizes(n, around[d].first + around[d].second) < add_sizes(front, back))
      throw ShapeError(fmt::format(
          "pad_general: widths {} and {} of {} along axis {}. No more goes than there is. Remove fewer.",
          widths[d].low, widths[d].high, count_text(n, "element"), d));
    y = primitive::slice_dim(y, d, 0, 0);
    around[d] = {n + widths[d].low + widths[d].high, 0};
  }
  return pad(y, around, value);
}
Array pad_general_fn::operator()(const Array& x, const std::vector<PadWidths>& widths, const Array& value,
                                 Where w) const {
  const Site site(w, "pad_general");
  const Type& t = type_of(x, "pad_general");
  if (widths.size() != t.shape.size())
    throw ShapeError(fmt::format("pad_general: {} for {}. Every dimension has three. Give as many.",
                                 count_text(widths.size(), "width"), to_string(t)));
  Type grown = t;
  for (std::size_t d = 0; d < widths.size(); d++) {
    const PadWidths& each = widths[d];
    if (std::min(each.low, each.high) < -byte_limit)
      throw ShapeError(fmt::format("pad_general: widths {} and {}. No more goes than there is. Remove fewer.",
                                   each.low, each.high));
    if (each.interior < 0)
      throw ShapeError(
          fmt::format("pad_general: {} elements between two. The number is not negative. Use a slice "
                      "with a step to remove elements.",
                      each.interior));
    const std::int64_t ends =
        add_sizes(std::max<std::int64_t>(each.low, 0), std::max<std::int64_t>(each.high, 0));
    grown.shape[d] = add_sizes(mul_sizes(t.shape[d], add_sizes(each.interior, 1)), ends);
  }
  check_type(grown, "pad_general");
  if (!type_of(value, "pad_general").shape.empty())
    throw ShapeError(fmt::format("pad_general: the value is {}. It is a scalar. Use where for others.",
                                 to_string(type_of(value))));
  if (is_literal(*value.node())) return padded_generally(x, widths, value);
  const Array zeros_around = padded_generally(x, widths, 0);
  const Array is_element = padded_generally(primitive::full(t.shape, DType::bool_, 1), widths, false);
  return primitive::select(
      is_element, zeros_around,
      primitive::broadcast_to(api::cast(value, {t.dtype, t.weak}), zeros_around.shape()));
}

// ---------------------------------------------------------------- ranks
Array ravel_fn::operator()(const Array& x, Where w) const {
  const Site site(w, "ravel");
  return primitive::reshape(x, {num_elements(type_of(x, "ravel").shape)});
}
static Array at_least(const char* function, const Array& x, std::size_t rank) {
  Shape shape = type_of(x, function).shape;
  while (shape.size() < std::min<std::size_t>(rank, 2)) shape.insert(0, 1);
  if (shape.size() < rank) shape.push_back(1);
  return primitive::reshape(x, shape);
}
Array atleast_1d_fn::operator()(const Array& x, Where w) const {
  const Site site(w, "atleast_1d");
  return at_least("atleast_1d", x, 1);
}
Array atleast_2d_fn::operator()(const Array& x, Where w) const {
  const Site site(w, "atleast_2d");
  return at_least("atleast_2d", x, 2);
}
Array atleast_3d_fn::operator()(const Array& x, Where w) const {
  const Site site(w, "atleast_3d");
  return at_least("atleast_3d", x, 3);
}
std::vector<Array> broadcast_arrays_fn::operator()(const std::vector<Array>& arrays, Where w) const {
  const Site site(w, "broadcast_arrays");
  std::vector<Shape> shapes;
  shapes.reserve(arrays.size());
  for (const Array& x : arrays) shapes.push_back(type_of(x, "broadcast_arrays").shape);
  const Shape shape = api::common_shape("broadcast_arrays", shapes);
  std::vector<Array> r;
  r.reserve(arrays.size());
  for (const Array& x : arrays) r.push_back(primitive::broadcast_to(x, shape));
  return r;
}

// ---------------------------------------------------------------- joining
static std::vector<Array> all_at_least(const char* function, const std::vector<Array>& parts,
                                       std::size_t rank) {
  std::vector<Array> r;
  r.reserve(parts.size());
  for (const Array& x : parts) r.push_back(at_least(function, x, rank));
  return r;
}
Array hstack_fn::operator()(const std::vector<Array>& parts, Where w) const {
  const Site site(w, "hstack");
  const std::vector<Array> rows = all_at_least("hstack", parts, 1);
  return concatenate(rows, rows.empty() || rows[0].shape().size() == 1 ? 0 : 1);
}
Array vstack_fn::operator()(const std::vector<Array>& parts, Where w) const {
  const Site site(w, "vstack");
  return concatenate(all_at_least("vstack", parts, 2), 0);
}
Array dstack_fn::operator()(const std::vector<Array>& parts, Where w) const {
  const Site site(w, "dstack");
  return concatenate(all_at_least("dstack", parts, 3), 2);
}
Array column_stack_fn::operator()(const std::vector<Array>& parts, Where w) const {
  const Site site(w, "column_stack");
  std::vector<Array> columns = all_at_least("column_stack", parts, 1);
  for (Array& x : columns)
    if (x.shape().size() == 1) x = primitive::reshape(x, {x.size(), 1});
  return concatenate(columns, 1);
}
Array append_fn::operator()(const Array& x, const Array& values, std::optional<std::int64_t> axis,
                            Where w) const {
  const Site site(w, "append");
  if (axis) return concatenate({x, values}, *axis);
  return concatenate({ravel(x), ravel(values)});
}
std::vector<Array> array_split_fn::operator()(const Array& x, std::int64_t n, std::int64_t axis,
                                              Where w) const {
  const Site site(w, "array_split");
  const std::size_t dim = api::axis_of("array_split", axis, type_of(x, "array_split").shape);
  if (n < 1 || n > 1 << 20)
    throw ShapeError(fmt::format("array_split: {} pieces. There are 1 to 2^20. Give how many there are.", n));
  const std::int64_t size = x.shape()[dim], longer = size % n;
  Shape starts;
  for (std::int64_t k = 1; k < n; k++) starts.push_back(k * (size / n) + std::min(k, longer));
  return split(x, starts, axis);
}
Array fliplr_fn::operator()(const Array& x, Where w) const {
  const Site site(w, "fliplr");
  return flip(x, 1);
}
Array flipud_fn::operator()(const Array& x, Where w) const {
  const Site site(w, "flipud");
  return flip(x, 0);
}

}  // namespace shardarray

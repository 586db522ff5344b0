// Repeating, joining and splitting, made of reshape, broadcast, concatenate and slice.
#include "shardarray/rearrange.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"

namespace shardarray {

// ---------------------------------------------------------------- repeating
static void need_repeats(const char* function, std::int64_t n) {
  if (n < 0)
    throw ShapeError(
        fmt::format("{}: {} times. The number is not negative. Use flip to reverse.", function, n));
}
// [n, m] as [1, n, 1, m], broadcast to [a, n, b, m].
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
  if (std::find(result.begin(), result.end(), 0) != result.end())  // the repeats alone may be too many
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

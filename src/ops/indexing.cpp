// Finding positions in data, and reading and writing at such positions.
#include "shardarray/indexing.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/count_text.h"
#include "base/sizes.h"
#include "ops/api.h"
#include "ops/array_index.h"
#include "ops/found.h"
#include "ops/row_index.h"

namespace shardarray {

// ---------------------------------------------------------------- positions of nonzero elements
void need_size(const char* function, std::int64_t size) {
  if (size < 0)
    throw ShapeError(
        fmt::format("{}: size {}. The number of positions is not negative. Give how many there are at most.",
                    function, size));
}

Found found(const Array& flat, std::int64_t size) {
  const std::int64_t n = flat.shape()[0];
  const DType t = api::position_type({std::max(n, size)});
  const Array places = primitive::iota({size}, 0, t);
  if (n == 0)
    return {primitive::like(places, 0), primitive::binary(op_lt, places, primitive::like(places, 0))};
  const Array count = cumsum(flat, {.dtype = t});
  const Array place = primitive::select(flat, primitive::sub(count, primitive::like_whole(count, 1)),
                                        primitive::like_whole(count, -1));
  const Array last = primitive::element(count, n - 1, {size});
  return {primitive::scatter(place, primitive::iota({n}, 0, t), 0, 1, size),
          primitive::binary(op_lt, places, last)};
}

namespace {

Array flat_mask(const char* function, const Array& x) {
  const Array mask = api::to_bool(x, function);
  return primitive::reshape(mask, {mask.size()});
}
Array or_fill(const char* function, const Found& f, const Array& at, std::int64_t fill_value) {
  if (!primitive::is_value(at.dtype(), fill_value, false))
    throw DTypeError(
        fmt::format("{}: fill_value {} among positions of {}. It is one of its values. Give another one.",
                    function, fill_value, name(at.dtype())));
  return primitive::select(f.is_there, at, primitive::like_whole(at, fill_value));
}
// Converts a flat position into one position per dimension.
std::vector<Array> unraveled(const Array& at, const Shape& shape) {
  std::vector<Array> r(shape.size());
  Array rest = at;
  for (std::size_t d = shape.size(); d-- > 0;) {
    const Array size = primitive::like_whole(rest, std::max<std::int64_t>(1, shape[d]));
    r[d] = d == 0 ? rest : primitive::binary(op_rem, rest, size);
    if (d > 0) rest = floor_divide(rest, size);
  }
  return r;
}

}  // namespace

static std::vector<Array> nonzero_places(const char* function, const Array& x, std::int64_t size,
                                         std::int64_t fill_value) {
  const Shape& shape = type_of(x, function).shape;
  if (shape.empty())
    throw ShapeError(
        fmt::format("{}: a scalar. It has no dimension for a position. Reshape it to (1).", function));
  need_size(function, size);
  const Found f = found(flat_mask(function, x), size);
  std::vector<Array> r = unraveled(f.at, shape);
  for (Array& at : r) at = or_fill(function, f, at, fill_value);
  return r;
}
std::vector<Array> nonzero(const Array& x, std::int64_t size, std::int64_t fill_value, Where w) {
  const Site site(w, "nonzero");
  return nonzero_places("nonzero", x, size, fill_value);
}
std::vector<Array> nonzero(const Array& x, Where w) {
  const Site site(w, "nonzero");
  return nonzero(x, count_of_true("nonzero", api::to_bool(x, "nonzero")));
}
Array flatnonzero_fn::operator()(const Array& x, std::int64_t size, std::int64_t fill_value, Where w) const {
  const Site site(w, "flatnonzero");
  need_size("flatnonzero", size);
  const Found f = found(flat_mask("flatnonzero", x), size);
  return or_fill("flatnonzero", f, f.at, fill_value);
}
Array argwhere_fn::operator()(const Array& x, std::int64_t size, std::int64_t fill_value, Where w) const {
  const Site site(w, "argwhere");
  return stack(nonzero_places("argwhere", x, size, fill_value), 1);
}

Array compress_fn::operator()(const Array& condition, const Array& x, std::int64_t size,
                              std::optional<std::int64_t> axis, double fill_value, Where w) const {
  const Site site(w, "compress");
  const Array from = axis ? x : primitive::reshape(x, {type_of(x, "compress").shape.empty() ? 1 : x.size()});
  const std::size_t dim = api::axis_of("compress", axis.value_or(0), type_of(from, "compress").shape);
  const Shape& mine = type_of(condition, "compress").shape;
  if (mine.size() != 1 || mine[0] > from.shape()[dim])
    throw ShapeError(
        fmt::format("compress: a condition of shape {} for {}. It is a vector that is not longer. Use "
                    "extract for all elements of an array.",
                    to_string(mine), count_text(from.shape()[dim], "element")));
  need_size("compress", size);
  Shape shape = from.shape();
  shape[dim] = size;
  Array otherwise = filled_with("compress", {shape, from.dtype(), type_of(from).weak}, fill_value);
  if (mine[0] == 0) return otherwise;
  const Found f = found(api::to_bool(condition, "compress"), size);
  return filled_outside(rows_along(from, f.at, dim), f.is_there, dim, otherwise);
}
Array extract_fn::operator()(const Array& condition, const Array& x, std::int64_t size, double fill_value,
                             Where w) const {
  const Site site(w, "extract");
  if (!(type_of(condition, "extract").shape == type_of(x, "extract").shape))
    throw ShapeError(
        fmt::format("extract: a condition of shape {} for shape {}. They are equal. Broadcast one.",
                    to_string(condition.shape()), to_string(x.shape())));
  need_size("extract", size);
  return compress(primitive::reshape(condition, {condition.size()}), x, size, std::nullopt, fill_value);
}

// ---------------------------------------------------------------- positions in several dimensions
static void need_elements_in(const char* function, const Shape& shape) {
  if (!shape.empty() && std::all_of(shape.begin(), shape.end(), [](std::int64_t n) { return n > 0; })) return;
  throw ShapeError(
      fmt::format("{}: positions in shape {}. It has dimensions, and elements. Give another one.", function,
                  to_string(shape)));
}
std::vector<Array> unravel_index(const Array& index, const Shape& shape, Where w) {
  const Site site(w, "unravel_index");
  need_index("unravel_index", index);
  need_elements_in("unravel_index", shape);
  std::int64_t total = 1;
  for (const std::int64_t n : shape) total = mul_sizes(total, n);
  return unraveled(
      primitive::cast(row_index(index, total, TakeMode::clip, true).at, api::position_type({total})), shape);
}
Array ravel_multi_index(const std::vector<Array>& index, const Shape& shape, TakeMode mode, Where w) {
  const Site site(w, "ravel_multi_index");
  need_elements_in("ravel_multi_index", shape);
  if (index.size() != shape.size())
    throw ShapeError(
        fmt::format("ravel_multi_index: {} in shape {}. There is one for each dimension. Give as many.",
                    count_text(index.size(), "position"), to_string(shape)));
  ArraysAt at;
  at.arrays = index;
  for (std::size_t d = 0; d < shape.size(); d++) at.dims.push_back(static_cast<std::int64_t>(d));
  return numbers_of("ravel_multi_index", at, shape, mode, mode == TakeMode::fill).at;
}

// ---------------------------------------------------------------- along an axis
Array put_along_axis_fn::operator()(const Array& x, const Array& index, const Array& values,
                                    std::int64_t axis, Where w) const {
  const Site site(w, "put_along_axis");
  need_index("put_along_axis", index);
  const Type& t = type_of(x, "put_along_axis");
  const std::size_t dim = api::axis_of("put_along_axis", axis, t.shape);
  check_kind("put_along_axis", t, type_of(values, "put_along_axis"));
  if (index.shape().size() != t.shape.size())
    throw ShapeError(fmt::format(
        "put_along_axis: an index {} of {}. Both have one rank. Use x.at(index) for one index of all rows.",
        to_string(type_of(index)), to_string(t)));
  Shape beside = t.shape, wanted = index.shape();
  beside[dim] = 1;
  const std::int64_t count = std::exchange(wanted[dim], 1), rank = std::ssize(t.shape);
  check_fits("put_along_axis", wanted, beside);
  beside[dim] = count;
  check_fits("put_along_axis", values.shape(), beside);
  if (num_elements(beside) == 0) return x;
  need_rows("put_along_axis", x, t.shape[dim], axis, index);
  // the axis moved last; the others are a batch
  const auto last = [&](const Array& y) { return moveaxis(y, static_cast<std::int64_t>(dim), rank - 1); };
  const RowIndex row = row_index(index, t.shape[dim], TakeMode::drop, true);
  const Array number = last(primitive::broadcast_to(
      primitive::select(row.inside, row.at, primitive::like_whole(row.at, -1)), beside));
  const Array updates = last(primitive::broadcast_to(api::cast(values, {t.dtype, t.weak}), beside));
  const Shape& batch = updates.shape();
  const DType order = api::position_type({count});
  const Array latest =
      primitive::scatter(number, primitive::iota(batch, static_cast<std::size_t>(rank - 1), order), rank - 1,
                         1, t.shape[dim], Reducer::max);
  const Array zero = primitive::like(latest, 0);
  const Array chosen = primitive::take(updates, primitive::binary(op_max, latest, zero), rank - 1, 1);
  return moveaxis(primitive::select(primitive::binary(op_ge, latest, zero), chosen, last(x)), rank - 1,
                  static_cast<std::int64_t>(dim));
}

Array choose(const Array& index, const std::vector<Array>& choices, TakeMode mode, Where w) {
  const Site site(w, "choose");
  need_index("choose", index);
  if (choices.empty()) throw ShapeError("choose: no choices. An index needs an element. Give one at least.");
  const WeakType t = api::promoted_all("choose", choices);
  std::vector<Shape> shapes = {index.shape()};
  for (const Array& x : choices) shapes.push_back(x.shape());
  const Shape shape = api::common_shape("choose", shapes);
  const RowIndex row = row_index(index, std::ssize(choices), mode, false);
  const Array at = primitive::broadcast_to(row.at, shape);
  Array r;
  for (std::size_t k = choices.size(); k-- > 0;) {
    const Array x = primitive::broadcast_to(api::cast(choices[k], t), shape);
    const auto number = static_cast<std::int64_t>(k);
    r = r.has_value()
            ? primitive::select(primitive::binary(op_eq, at, primitive::like_whole(at, number)), x, r)
            : x;
  }
  if (!row.inside.has_value()) return r;
  return primitive::select(primitive::broadcast_to(row.inside, shape), r, outside_value(type_of(r)));
}

// ---------------------------------------------------------------- parts that start at positions in data
static void need_begin(const char* function, const Array& start, std::int64_t n, std::int64_t size) {
  need_index(function, start);
  if (!start.shape().empty())
    throw ShapeError(fmt::format("{}: a start {}. It is a scalar for each dimension. Take its elements.",
                                 function, to_string(type_of(start))));
  if (size < 0 || size > n)
    throw ShapeError(
        fmt::format("{}: a part of size {} of a dimension of size {}. It is no larger. Give a smaller size.",
                    function, size, n));
}
static void need_starts(const char* function, const std::vector<Array>& starts, const Shape& sizes,
                        const Shape& shape) {
  if (starts.size() == shape.size() && sizes.size() == shape.size()) return;
  throw ShapeError(
      fmt::format("{}: {} and {} for shape {}. There is one of each for a dimension. Give as many.", function,
                  count_text(starts.size(), "start"), count_text(sizes.size(), "size"), to_string(shape)));
}
// The dimensions in which a part is smaller than the whole, with its starts there.
struct PartBegins {
  Shape dims;
  std::vector<Array> starts;
};
static PartBegins part_begins(const char* function, const Shape& shape, const std::vector<Array>& starts,
                              const Shape& sizes) {
  need_starts(function, starts, sizes, shape);
  PartBegins r;
  for (std::size_t d = 0; d < shape.size(); d++) {
    const std::int64_t n = shape[d];
    need_begin(function, starts[d], n, sizes[d]);
    if (sizes[d] == n) continue;
    const Array at =
        primitive::cast(row_index(starts[d], n, TakeMode::clip, true).at, api::position_type({n}));
    r.dims.push_back(static_cast<std::int64_t>(d));
    r.starts.push_back(primitive::binary(op_min, at, primitive::like_whole(at, n - sizes[d])));
  }
  return r;
}
static Array part_of(const char* function, const Array& x, const std::vector<Array>& starts,
                     const Shape& sizes) {
  const PartBegins begins = part_begins(function, type_of(x, function).shape, starts, sizes);
  return primitive::part_at(x, sizes, begins.dims, begins.starts);
}
// Strong, as in JAX.
static Array with_update(const char* function, const Array& x, const Array& update,
                         const std::vector<Array>& starts) {
  const Type& t = type_of(x, function);
  check_kind(function, t, type_of(update, function));
  const PartBegins begins = part_begins(function, t.shape, starts, update.shape());
  Array before = primitive::cast(x, t.dtype);
  const Array y = api::cast(update, {t.dtype, false});
  if (num_elements(y.shape()) == 0) return before;
  return begins.dims.empty() ? y : primitive::update(before, y, begins.dims, begins.starts);
}
// The given start along one dimension, 0 along the others.
static std::vector<Array> starts_along(std::size_t rank, std::size_t dim, const Array& start) {
  std::vector<Array> starts(rank, primitive::full({}, DType::int32, 0));
  starts[dim] = start;
  return starts;
}

static Array part_along(const char* function, const Array& x, std::size_t dim, const Array& start,
                        std::int64_t size) {
  Shape sizes = x.shape();
  sizes[dim] = size;
  return part_of(function, x, starts_along(sizes.size(), dim, start), sizes);
}

Array dynamic_slice(const Array& x, const std::vector<Array>& starts, const Shape& sizes, Where w) {
  const Site site(w, "dynamic_slice");
  return part_of("dynamic_slice", x, starts, sizes);
}
Array dynamic_update_slice(const Array& x, const Array& update, const std::vector<Array>& starts, Where w) {
  const Site site(w, "dynamic_update_slice");
  return with_update("dynamic_update_slice", x, update, starts);
}
Array dynamic_slice_in_dim(const Array& x, const Array& start, std::int64_t size, std::int64_t axis,
                           Where w) {
  const Site site(w, "dynamic_slice_in_dim");
  const std::size_t dim =
      api::axis_of("dynamic_slice_in_dim", axis, type_of(x, "dynamic_slice_in_dim").shape);
  return part_along("dynamic_slice_in_dim", x, dim, start, size);
}
Array dynamic_update_slice_in_dim(const Array& x, const Array& update, const Array& start, std::int64_t axis,
                                  Where w) {
  constexpr const char* function = "dynamic_update_slice_in_dim";
  const Site site(w, function);
  const Shape& shape = type_of(x, function).shape;
  return with_update(function, x, update,
                     starts_along(shape.size(), api::axis_of(function, axis, shape), start));
}
Array dynamic_index_in_dim(const Array& x, const Array& index, std::int64_t axis, bool keepdims, Where w) {
  constexpr const char* function = "dynamic_index_in_dim";
  const Site site(w, function);
  const std::size_t dim = api::axis_of(function, axis, type_of(x, function).shape);
  Array y = part_along(function, x, dim, index, 1);
  if (keepdims) return y;
  Shape shape = y.shape();
  shape.erase(dim);
  return primitive::reshape(y, shape);
}

}  // namespace shardarray

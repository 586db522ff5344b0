// Creation, positions: zeros, arange, take, sort.
#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "ops/api.h"
#include "shardarray/ops.h"

namespace shardarray {

static void check_shape(const char* function, const Shape& shape, DType t) {
  api::need_real(function, t);
  for (std::int64_t size : shape)
    if (size < 0)
      throw ShapeError(
          fmt::format("{}: shape {}. Sizes are not negative. Give the number of elements of every dimension.",
                      function, to_string(shape)));
  num_elements(shape);
}

Array zeros_fn::operator()(const Shape& shape, DType dtype, Where w) const {
  const Site site(w);
  check_shape("zeros", shape, dtype);
  return zeros_of({shape, dtype, false});
}
Array ones_fn::operator()(const Shape& shape, DType dtype, Where w) const {
  const Site site(w);
  check_shape("ones", shape, dtype);
  return one_of({shape, dtype, false});
}
static Array filled(const char* function, const Shape& shape, const Array& value,
                    std::optional<DType> dtype) {
  check_shape(function, shape, dtype.value_or(type_of(value, function).dtype));
  const Array v = dtype ? prim::cast(value, *dtype) : value;
  const Shape shapes[] = {type_of(v, function).shape, shape};
  if (!(api::common_shape(function, shapes) == shape))
    throw ShapeError(fmt::format(
        "{}: the value has shape {}, the result {}. The value is broadcast to the result. Give a scalar.",
        function, to_string(v.shape()), to_string(shape)));
  return prim::broadcast_to(v, shape);
}
Array full_fn::operator()(const Shape& shape, const Array& value, std::optional<DType> dtype, Where w) const {
  const Site site(w);
  return filled("full", shape, value, dtype);
}
Array zeros_like_fn::operator()(const Array& x, std::optional<DType> dtype, Where w) const {
  const Site site(w);
  const Type& t = type_of(x, "zeros_like");
  api::need_real("zeros_like", dtype.value_or(t.dtype));
  return prim::placed_like(zeros_of({t.shape, dtype.value_or(t.dtype), !dtype && t.weak}), x);
}
Array ones_like_fn::operator()(const Array& x, std::optional<DType> dtype, Where w) const {
  const Site site(w);
  const Type& t = type_of(x, "ones_like");
  api::need_real("ones_like", dtype.value_or(t.dtype));
  return prim::placed_like(one_of({t.shape, dtype.value_or(t.dtype), !dtype && t.weak}), x);
}
Array full_like_fn::operator()(const Array& x, const Array& value, std::optional<DType> dtype,
                               Where w) const {
  const Site site(w);
  const Type& t = type_of(x, "full_like");
  return prim::placed_like(filled("full_like", t.shape, value, dtype.value_or(t.dtype)), x);
}

// start + step * i
static Array progression(std::int64_t n, const Array& start, const Array& step) {
  const Array i = prim::iota({n}, 0, start.dtype());
  return prim::add(prim::mul(i, prim::broadcast_to(step, {n})), prim::broadcast_to(start, {n}));
}
static void check_step(bool is_zero) {
  if (is_zero) throw ShapeError("arange: step 0. It would never reach the end. Give a step that is not 0.");
}
Array arange_fn::floats(double start, double stop, double step, DType dtype, Where w) const {
  const Site site(w);
  api::need_real("arange", dtype);
  check_step(step == 0);
  const double count = std::max(0.0, std::ceil((stop - start) / step));
  if (!(count < 9e15))
    throw ShapeError(
        fmt::format("arange: {} to {} by {}. The number of elements must be finite. Give finite bounds.",
                    start, stop, step));
  return progression(static_cast<std::int64_t>(count),
                     prim::constant(dtype, prim::bits_of(dtype, start), false),
                     prim::constant(dtype, prim::bits_of(dtype, step), false));
}
Array arange_fn::integers(std::int64_t start, std::int64_t stop, std::int64_t step, DType dtype,
                          Where w) const {
  const Site site(w);
  api::need_real("arange", dtype);
  check_step(step == 0);
  const std::int64_t span = step > 0 ? stop - start : start - stop, by = step > 0 ? step : -step;
  const std::int64_t n = span <= 0 ? 0 : (span - 1) / by + 1;
  if (start == 0 && step == 1) return prim::iota({n}, 0, dtype);
  return progression(n, prim::constant(dtype, prim::bits_of(dtype, start), false),
                     prim::constant(dtype, prim::bits_of(dtype, step), false));
}

// start * (1 - t) + stop * t for t = i / (num - 1); the last one is stop itself.
Array linspace_fn::operator()(double start, double stop, std::int64_t num, const LinspaceOptions& o,
                              Where w) const {
  const Site site(w);
  api::need_real("linspace", o.dtype);
  if (num < 0)
    throw ShapeError(fmt::format(
        "linspace: num is {}. The number of values is not negative. Give how many there are.", num));
  const DType t = is_floating(o.dtype) ? o.dtype : DType::float32;
  const double intervals = static_cast<double>(std::max<std::int64_t>(1, o.endpoint ? num - 1 : num));
  const Array i = prim::iota({num}, 0, t), at = prim::div(i, prim::like(i, intervals)),
              one = prim::like(i, 1);
  Array values =
      prim::add(prim::mul(prim::like(i, start), prim::sub(one, at)), prim::mul(prim::like(i, stop), at));
  if (o.endpoint && num > 1)
    values = prim::select(prim::binary(op_eq, i, prim::like(i, intervals)), prim::like(i, stop), values);
  if (o.dtype != t) values = prim::unary(op_floor, values);
  return prim::cast(values, o.dtype);
}
Array eye_fn::operator()(std::int64_t n, std::optional<std::int64_t> m, std::int64_t k, DType dtype,
                         Where w) const {
  const Site site(w);
  const Shape shape{n, m.value_or(n)};
  check_shape("eye", shape, dtype);
  const Array row = prim::iota(shape, 0, DType::int32);
  return prim::cast(prim::binary(op_eq, prim::iota(shape, 1, DType::int32),
                                 prim::add(row, prim::like(row, static_cast<double>(k)))),
                    dtype);
}

// ---------------------------------------------------------------- take
// What jnp.take gives outside: NaN, the lowest signed and the highest unsigned value.
static Array outside_value(const Type& t) {
  if (is_floating(t.dtype)) return prim::full(t.shape, t.dtype, std::numeric_limits<double>::quiet_NaN());
  const double infinity = std::numeric_limits<double>::infinity();
  return prim::full(t.shape, t.dtype, is_signed_integer(t.dtype) ? -infinity : infinity);
}

Array take_fn::operator()(const Array& x, const Array& index, std::optional<std::int64_t> axis, TakeMode mode,
                          Where w) const {
  const Site site(w);
  if (!is_integer(type_of(index, "take").dtype)) api::refuse_dtype("take", index, "Indices are integers");
  Array table = axis ? x : prim::reshape(x, {num_elements(type_of(x, "take").shape)});
  const std::size_t dim = api::axis_of("take", axis.value_or(0), type_of(table, "take").shape);
  table = moveaxis(table, static_cast<std::int64_t>(dim), 0);
  const auto rows = static_cast<double>(table.shape()[0]);
  Array i = itemsize(index.dtype()) < 4 ? prim::cast(index, DType::int32) : index;
  const bool can_be_negative = is_signed_integer(i.dtype());
  auto at = [&](double v) { return prim::like(i, v); };
  if (can_be_negative && mode != TakeMode::clip)
    i = prim::select(prim::binary(op_lt, i, at(0)), prim::add(i, at(rows)), i);
  const auto rank = static_cast<std::int64_t>(i.shape().size());
  Array inside;
  if (mode == TakeMode::clip) {
    if (can_be_negative) i = prim::binary(op_max, i, at(0));
    i = prim::binary(op_min, i, at(rows - 1));
  } else {
    inside = prim::binary(op_lt, i, at(rows));
    if (can_be_negative) inside = prim::binary(op_and, inside, prim::binary(op_ge, i, at(0)));
  }
  Array taken = prim::take(table, i, 0, rank);
  if (inside.has_value()) {
    const Type& t = type_of(taken);
    Shape dims;
    for (std::int64_t d = 0; d < rank; d++) dims.push_back(d - static_cast<std::int64_t>(t.shape.size()));
    taken = prim::select(prim::broadcast(inside, t.shape, dims), taken, outside_value(t));
  }
  // [i.., a.., c..] -> [a.., i.., c..]
  Shape from, to;
  for (std::int64_t d = 0; d < rank; d++) {
    from.push_back(d);
    to.push_back(static_cast<std::int64_t>(dim) + d);
  }
  return moveaxis(taken, from, to);
}

// ---------------------------------------------------------------- sort
Array sort_fn::operator()(const Array& x, std::int64_t axis, Where w) const {
  const Site site(w);
  const std::size_t dim = api::axis_of("sort", axis, type_of(x, "sort").shape);
  return prim::sort({&x, 1}, dim)[0];
}
Array argsort_fn::operator()(const Array& x, std::int64_t axis, Where w) const {
  const Site site(w);
  const std::size_t dim = api::axis_of("argsort", axis, type_of(x, "argsort").shape);
  const Array operands[] = {x, prim::iota(x.shape(), dim, DType::int32)};
  return prim::sort(operands, dim)[1];
}

}  // namespace shardarray

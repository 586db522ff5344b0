// Arrays from literals, and masks of matrices by position.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "ops/rules.h"
#include "shardarray/ops.h"

namespace shardarray {

using namespace rules;

static Types iota_type(const Call& c) {
  const Shape& shape = c.attrs->shape;
  const DType t = c.attrs->dtype;
  const std::int64_t n = shape[from_first(c.attrs->dims[0], shape.size())];
  if (n > 0 && !primitive::is_value(t, n - 1, false))
    throw DTypeError(
        fmt::format("{}: the positions along a dimension of {} elements do not fit into {}. A position is a "
                    "value of its dtype. Use a wider dtype, or reshape so that the dimension is shorter.",
                    current_function(c.op->name), n, name(t)));
  return {{shape, t, false}};
}

// attrs.shape, dtype, dims[0]: the index along that dimension; no operands.
SHARDARRAY_OP op_iota = elementwise({.name = "iota",
                                     .type = iota_type,
                                     .scalar =
                                         [](ScalarArgs& s) {
                                           const auto dim = static_cast<int>(
                                               from_first(s.call.attrs->dims[0], s.call.attrs->shape.size()));
                                           s.out[0] = s.b.cast(s.index(s, dim), s.call.attrs->dtype);
                                         },
                                     .trait = Trait::positions});

Array zeros_fn::operator()(const Shape& shape, DType dtype, Where w) const {
  const Site site(w, "zeros");
  return api::created(zeros_of({shape, dtype, false}));
}
Array ones_fn::operator()(const Shape& shape, DType dtype, Where w) const {
  const Site site(w, "ones");
  return api::created(one_of({shape, dtype, false}));
}
static Array filled(const char* function, const Shape& shape, const Array& value,
                    std::optional<DType> dtype) {
  const Type& given = type_of(value, function);
  const Array v = dtype ? api::cast(value, {*dtype, false}) : value;
  check_type({shape, dtype.value_or(given.dtype)}, function);
  const Shape shapes[] = {type_of(v, function).shape, shape};
  if (!(api::common_shape(function, shapes) == shape))
    throw ShapeError(fmt::format(
        "{}: the value has shape {}, the result {}. The value is broadcast to the result. Give a scalar.",
        function, to_string(v.shape()), to_string(shape)));
  return primitive::broadcast_to(v, shape);
}
Array full_fn::operator()(const Shape& shape, const Array& value, std::optional<DType> dtype, Where w) const {
  const Site site(w, "full");
  return api::created(filled("full", shape, value, dtype));
}
Array zeros_like_fn::operator()(const Array& x, std::optional<DType> dtype, Where w) const {
  const Site site(w, "zeros_like");
  const Type& t = type_of(x, "zeros_like");
  return primitive::placed_like(zeros_of({t.shape, dtype.value_or(t.dtype), !dtype && t.weak}), x);
}
Array ones_like_fn::operator()(const Array& x, std::optional<DType> dtype, Where w) const {
  const Site site(w, "ones_like");
  const Type& t = type_of(x, "ones_like");
  return primitive::placed_like(one_of({t.shape, dtype.value_or(t.dtype), !dtype && t.weak}), x);
}
Array full_like_fn::operator()(const Array& x, const Array& value, std::optional<DType> dtype,
                               Where w) const {
  const Site site(w, "full_like");
  const Type& t = type_of(x, "full_like");
  const Array filled_with = filled("full_like", t.shape, value, dtype.value_or(t.dtype));
  return primitive::placed_like(primitive::cast(filled_with, dtype.value_or(t.dtype), !dtype && t.weak), x);
}

// start + step * i for two literals of one dtype; 16-bit floats in float32, where positions do not overflow.
template <class T> static Array progression(std::int64_t n, T first, T by, DType dtype) {
  const DType t = api::computed(dtype);
  const Array start = primitive::constant(t, primitive::bits_of(t, first), false),
              step = primitive::constant(t, primitive::bits_of(t, by), false);
  const bool fits = n == 0 || primitive::is_value(t, n - 1, false);
  const Array i = fits ? primitive::iota({n}, 0, t)
                       : primitive::cast(primitive::iota({n}, 0, api::position_type({n})), t);
  return primitive::cast(primitive::add(primitive::mul(i, primitive::broadcast_to(step, {n})),
                                        primitive::broadcast_to(start, {n})),
                         dtype);
}
void arange_fn::refuse(std::uint64_t bound) {
  throw ShapeError(
      fmt::format("arange: {}. Bounds and steps are below 2^63. Add an array to a smaller range.", bound));
}
static void check_range(DType dtype, bool is_zero) {
  api::need_real("arange", dtype);
  if (dtype == DType::bool_)
    throw DTypeError("arange: bool. A range is of numbers. Compare a range of int32 instead.");
  if (is_zero) throw ShapeError("arange: step 0. It would never reach the end. Give a step that is not 0.");
}
static constexpr const char* none_wraps = "A range has values of its dtype, and none wraps";
[[noreturn]] static void refuse_range_value(const std::string& v, DType dtype, const char* rule,
                                            const char* wide) {
  throw DTypeError(fmt::format("arange: the value {} does not fit into {}. {}. Say arange(..., {}).", v,
                               name(dtype), rule, wide));
}
// For an integer between -2^64 and 2^64.
static std::int64_t word_of(double v) {
  const auto size = static_cast<std::uint64_t>(std::abs(v));
  return static_cast<std::int64_t>(v < 0 ? 0 - size : size);
}
Array arange_fn::floats(double start, double stop, double step, DType dtype, Where w) const {
  const Site site(w, "arange");
  check_range(dtype, step == 0);
  const double count = std::ceil((stop - start) / step);  // NaN if a bound is NaN
  if (!(count < 9e15))
    throw ShapeError(
        fmt::format("arange: {} to {} by {}. The number of elements must be finite. Give finite bounds.",
                    start, stop, step));
  const auto n = static_cast<std::int64_t>(std::max(0.0, count));
  if (!is_integer(dtype) || n == 0) return api::created(progression(n, start, step, dtype));
  const double first = std::trunc(start), by = std::trunc(step);
  const double last = first + by * static_cast<double>(n - 1), low = std::min(first, last),
               high = std::max(first, last);
  for (const double v : {first, last}) {
    const bool is_word = v >= -0x1p63 && v < 0x1p64;
    if (!is_word || !primitive::is_value(dtype, word_of(v), v >= 0x1p63))
      refuse_range_value(fmt::format("{}", v), dtype, none_wraps,
                         low >= -0x1p63 && high < 0x1p63 ? "int64"
                         : low >= 0 && high < 0x1p64     ? "uint64"
                                                         : "float64");
  }
  return api::created(progression(n, word_of(first), n == 1 ? 0 : word_of(by), dtype));
}
Array arange_fn::integers(std::int64_t start, std::int64_t stop, std::int64_t step, DType dtype,
                          Where w) const {
  const Site site(w, "arange");
  check_range(dtype, step == 0);
  // In unsigned 64 bits: the span of two int64 may not fit into int64.
  const auto word = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
  const bool rises = step > 0, is_empty = rises ? stop <= start : start <= stop;
  const std::uint64_t span = rises ? word(stop) - word(start) : word(start) - word(stop);
  const std::uint64_t intervals = is_empty ? 0 : (span - 1) / (rises ? word(step) : 0 - word(step));
  const auto last = static_cast<std::int64_t>(word(start) + intervals * word(step));
  const std::int64_t n = is_empty ? 0 : add_sizes(to_int64(intervals), 1);
  check_type({{n}, dtype}, "arange");
  for (const std::int64_t v : {start, last})
    if (n > 0 && !primitive::is_value(dtype, v, false))
      refuse_range_value(
          std::to_string(v), dtype,
          dtype == DType::int32 ? "Whole numbers give int32 unless a dtype is named" : none_wraps, "int64");
  if (start == 0 && step == 1) return api::created(primitive::iota({n}, 0, dtype));
  return api::created(progression(n, start, step, dtype));
}

// Floats: start * (1 - t) + stop * t for t = i / intervals. Integers are rounded down afterwards: start + i (stop - start) / intervals hits
// exact integers exactly.
static Array spaced(const Array& i, double start, double stop, double intervals, bool whole) {
  const auto number = [&](double v) { return primitive::like(i, v); };
  if (whole)
    return primitive::add(number(start),
                          primitive::div(primitive::mul(i, number(stop - start)), number(intervals)));
  const Array at = primitive::div(i, number(intervals));
  return primitive::add(primitive::mul(number(start), primitive::sub(number(1), at)),
                        primitive::mul(number(stop), at));
}
// Computed in float64 for integers, in float32 for 16-bit floats; the last value is exactly stop.
Array linspace_fn::operator()(double start, double stop, std::int64_t num, const LinspaceOptions& o,
                              Where w) const {
  const Site site(w, "linspace");
  api::need_real("linspace", o.dtype);
  if (num < 0)
    throw ShapeError(fmt::format(
        "linspace: num is {}. The number of values is not negative. Give how many there are.", num));
  const bool whole = !is_floating(o.dtype);
  const double intervals = static_cast<double>(std::max<std::int64_t>(1, o.endpoint ? num - 1 : num));
  const Array i = primitive::iota({num}, 0, whole ? DType::float64 : api::computed(o.dtype));
  Array values = spaced(i, start, stop, intervals, whole);
  if (o.endpoint && num > 1)
    values = primitive::select(primitive::binary(op_eq, i, primitive::like(i, intervals)),
                               primitive::like(i, stop), values);
  if (whole) values = primitive::unary(op_floor, values);
  return api::created(primitive::cast(values, o.dtype));
}
Array eye_fn::operator()(std::int64_t n, std::optional<std::int64_t> m, std::int64_t k, DType dtype,
                         Where w) const {
  const Site site(w, "eye");
  const Shape shape{n, m.value_or(n)};
  check_type({shape, dtype}, "eye");
  const DType t = api::position_type(shape);
  const Array row = primitive::iota(shape, 0, t);
  const std::int64_t shift = std::clamp(k, -shape[0], shape[1]);  // diagonals beyond these are empty
  return api::created(
      primitive::cast(primitive::binary(op_eq, primitive::iota(shape, 1, t),
                                        primitive::add(row, primitive::like_whole(row, shift))),
                      dtype));
}

// ---------------------------------------------------------------- triangles
// Keeps elements with column - row <= k (lower) or >= k.
static Array triangle(const char* function, const Array& x, std::int64_t k, const Op& kept) {
  const Shape& shape = type_of(x, function).shape;
  if (shape.size() < 2)
    throw ShapeError(fmt::format("{}: shape {}. A matrix has two dimensions at least. Reshape first.",
                                 function, to_string(shape)));
  const Shape matrix{shape[shape.size() - 2], shape.back()};
  const DType t = api::position_type(matrix);
  const Array distance = primitive::sub(primitive::iota(matrix, 1, t), primitive::iota(matrix, 0, t));
  const std::int64_t diagonal = std::clamp(k, -matrix[0], matrix[1]);  // beyond: all or nothing is kept
  const Array keep = primitive::binary(kept, distance, primitive::like_whole(distance, diagonal));
  return primitive::select(primitive::broadcast_to(keep, shape), x, zeros_of(type_of(x)));
}
Array tril_fn::operator()(const Array& x, std::int64_t k, Where w) const {
  const Site site(w, "tril");
  return triangle("tril", x, k, op_le);
}
Array triu_fn::operator()(const Array& x, std::int64_t k, Where w) const {
  const Site site(w, "triu");
  return triangle("triu", x, k, op_ge);
}

}  // namespace shardarray

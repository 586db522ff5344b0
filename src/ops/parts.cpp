// The parts of floating numbers (sign, exponent, fraction, neighbours), and special treatment of NaN, infinities and zeros.
#include <fmt/core.h>

#include <limits>

#include "base/count_text.h"
#include "ops/complex.h"
#include "ops/function.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The bit layout of a floating dtype.
struct FloatLayout {
  DType bits;         // the signed integer of the same width
  int fraction_bits;  // stored
  int bias;
};
FloatLayout layout_of(DType t) {
  switch (t) {
    case DType::float16: return {DType::int16, 10, 15};
    case DType::bfloat16: return {DType::int16, 7, 127};
    case DType::float32: return {DType::int32, 23, 127};
    default: return {DType::int64, 52, 1023};
  }
}
Array bits_of_float(const Array& x) { return primitive::bitcast(x, layout_of(x.dtype()).bits); }
Array constant_like(const Array& x) { return primitive::unary(op_stop_gradient, x); }
Array is_negative(const Array& x) {
  if (is_floating(x.dtype())) return bits_of_float(x) < 0;
  return is_signed_integer(x.dtype()) ? x < 0 : zeros_of({x.shape(), DType::bool_, false});
}
}  // namespace

// ---------------------------------------------------------------- signs and neighbours
template <>
constexpr UnaryBody unary_body<"signbit"> = [](const char* function, const Array& x) {
  api::need_real(function, x);
  return is_negative(x);
};
template SHARDARRAY_API Array UnaryFunction<"signbit">::operator()(const Array&, Where) const;
template <>
constexpr BinaryBody binary_body<"copysign"> = [](const char* function, const Array& a, const Array& b) {
  const WeakType t = api::to_inexact(api::promoted(function, {&a, &b}));
  const Arrays x = api::together(function, {&a, &b}, t);
  const Array size = primitive::unary(op_abs, api::cast(x[0], t));
  return primitive::select(is_negative(x[1]), primitive::neg(size), size);
};
template SHARDARRAY_API Array BinaryFunction<"copysign">::operator()(const Array&, const Array&, Where) const;
// As integers, bits of positive numbers increase with the value, those of negative ones with the magnitude.
template <>
constexpr BinaryBody binary_body<"nextafter"> = [](const char* function, const Array& a, const Array& b) {
  const Arrays given = api::floats_together(function, {&a, &b});
  const Array x = constant_like(given[0]), to = constant_like(given[1]), bits = bits_of_float(x);
  const Array outwards = (to > x) == (x > 0), zero = x == 0;
  const Array step =
      primitive::select(outwards, primitive::like_whole(bits, 1), primitive::like_whole(bits, -1));
  const Array smallest = primitive::bitcast(primitive::like_whole(bits, 1), x.dtype());
  const Array from_zero = primitive::select(to > 0, smallest, primitive::neg(smallest));
  const Array next = primitive::select(zero, from_zero, primitive::bitcast(bits + step, x.dtype()));
  const Array ordered = primitive::select(x == to, to, next);
  const Array y = primitive::select((x != x) | (to != to), x + to, ordered);
  return primitive::cast(y, y.dtype(), api::promoted(function, {&a, &b}).weak);
};
template SHARDARRAY_API Array BinaryFunction<"nextafter">::operator()(const Array&, const Array&,
                                                                      Where) const;
template <>
constexpr BinaryBody binary_body<"heaviside"> = [](const char* function, const Array& a, const Array& b) {
  const Arrays v = api::floats_together(function, {&a, &b});
  const Array x = constant_like(v[0]);
  const Array step = primitive::select(x > 0, primitive::like(x, 1), v[1]);
  return api::strong_array(
      primitive::select(x != x, x, primitive::select(x < 0, primitive::like(x, 0), step)));
};
template SHARDARRAY_API Array BinaryFunction<"heaviside">::operator()(const Array&, const Array&,
                                                                      Where) const;
template <>
constexpr UnaryBody unary_body<"positive"> = [](const char* function, const Array& x) {
  type_of(x, function);
  return x;
};
template SHARDARRAY_API Array UnaryFunction<"positive">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"rint"> = floating<op_round>;
template SHARDARRAY_API Array UnaryFunction<"rint">::operator()(const Array&, Where) const;

// ---------------------------------------------------------------- NaN and infinities
static Array is_infinity(const char* function, const Array& x, double which) {
  if (!is_floating(api::weak_type_of(x, function).dtype)) return zeros_of({x.shape(), DType::bool_, false});
  return primitive::binary(op_eq, x, primitive::like(x, which));
}
template <>
constexpr UnaryBody unary_body<"isposinf"> =
    [](const char* function, const Array& x) { return is_infinity(function, x, kInfinity); };
template SHARDARRAY_API Array UnaryFunction<"isposinf">::operator()(const Array&, Where) const;
template <>
constexpr UnaryBody unary_body<"isneginf"> =
    [](const char* function, const Array& x) { return is_infinity(function, x, -kInfinity); };
template SHARDARRAY_API Array UnaryFunction<"isneginf">::operator()(const Array&, Where) const;

// The larger (smaller) number; if one is NaN, the other.
template <const Op& better> static Array with_numbers(const char* function, const Array& a, const Array& b) {
  const Arrays x = api::together(function, {&a, &b}, api::promoted(function, {&a, &b}));
  Array first = primitive::binary(better, x[0], x[1]);
  if (is_floating(x[0].dtype())) first = first | (x[1] != x[1]);
  return primitive::select(first, x[0], x[1]);
}
template <> constexpr BinaryBody binary_body<"fmax"> = with_numbers<op_gt>;
template SHARDARRAY_API Array BinaryFunction<"fmax">::operator()(const Array&, const Array&, Where) const;
template <> constexpr BinaryBody binary_body<"fmin"> = with_numbers<op_lt>;
template SHARDARRAY_API Array BinaryFunction<"fmin">::operator()(const Array&, const Array&, Where) const;

Array nan_to_num_fn::operator()(const Array& x, const NanToNumOptions& o, Where w) const {
  const Site site(w, "nan_to_num");
  const DType dtype = api::weak_type_of(x, "nan_to_num").dtype;
  if (is_complex(dtype))
    return primitive::pair(nan_to_num(primitive::real(x), o), nan_to_num(primitive::imag(x), o));
  if (!is_floating(dtype)) return x;
  const FloatLayout layout = layout_of(x.dtype());
  // the bits below those of infinity
  const std::int64_t last = (static_cast<std::int64_t>(2 * layout.bias + 1) << layout.fraction_bits) - 1;
  const Array largest = primitive::bitcast(
      primitive::constant(layout.bits, primitive::bits_of(layout.bits, last), false), x.dtype());
  const Array high = primitive::broadcast_to(largest, x.shape());
  const auto or_number = [&](const std::optional<double>& v, const Array& other) {
    return v ? primitive::like(x, *v) : other;
  };
  Array r = primitive::select(x != x, primitive::like(x, o.nan), x);
  r = primitive::select(x == kInfinity, or_number(o.posinf, high), r);
  return primitive::select(x == -kInfinity, or_number(o.neginf, primitive::neg(high)), r);
}

// ---------------------------------------------------------------- truncated division, fractions
template <>
constexpr BinaryBody binary_body<"fmod"> = [](const char* function, const Array& a, const Array& b) {
  api::need_real(function, a);
  api::need_real(function, b);
  const Arrays x = api::together(function, {&a, &b}, api::counted(api::promoted(function, {&a, &b})));
  return primitive::binary(op_rem, x[0], x[1]);
};
template SHARDARRAY_API Array BinaryFunction<"fmod">::operator()(const Array&, const Array&, Where) const;
std::pair<Array, Array> modf(const Operand& operand) {
  const Site site(operand.where, "modf");
  const Array x = operand.value();
  const Array y = api::cast(x, api::to_inexact(api::weak_type_of(x, "modf")));
  const Array whole = primitive::unary(op_trunc, y);
  return {primitive::sub(y, whole), whole};
}

// ---------------------------------------------------------------- exponents
// 2^n as `t`, for int32 n in the normal range.
static Array two_to(const Array& n, DType t) {
  const FloatLayout layout = layout_of(t);
  const Array wide = primitive::cast(n, layout.bits);
  return primitive::bitcast((wide + layout.bias) << layout.fraction_bits, t);
}
// The fraction is x times a power of two, in two exact steps; 16-bit numbers are normal in float32.
std::pair<Array, Array> frexp(const Operand& operand) {
  const Site site(operand.where, "frexp");
  const Array x = operand.value();
  const WeakType t = api::to_inexact(api::weak_type_of(x, "frexp"));
  const Array y = api::cast(x, {api::computed(t).dtype, false}),
              size = primitive::unary(op_abs, constant_like(y));
  const FloatLayout layout = layout_of(y.dtype());
  const double lift = y.dtype() == DType::float64 ? 0x1p54 : 0x1p25;
  const Array tiny = size < (y.dtype() == DType::float64 ? 0x1p-1022 : 0x1p-126);
  const Array normal = primitive::select(tiny, size * lift, size);
  Array e = primitive::cast(bits_of_float(normal) >> layout.fraction_bits, DType::int32) - (layout.bias - 1);
  e = primitive::select(tiny, e - (y.dtype() == DType::float64 ? 54 : 25), e);
  const Array special = (size == 0) | !(size < kInfinity);
  e = primitive::select(special, primitive::like(e, 0), e);
  const Array half = e >> 1;
  const Array fraction = (y * two_to(-half, y.dtype())) * two_to(half - e, y.dtype());
  return {api::cast(fraction, {t.dtype, false}), e};
}
// Up to three steps, of which only the last can round: the others leave the normal range only if the result is 0 or infinite (same steps as
// musl's scalbn).
Array ldexp(const Operand& operand, const Operand& exponent) {
  const Site site(operand.where, "ldexp");
  const Array x = operand.value(), n = exponent.value();
  const WeakType t = api::to_inexact(api::weak_type_of(x, "ldexp"));
  api::need_integers("ldexp", n);
  const Arrays both = {
      api::cast(x, api::computed(t)),
      itemsize(n.dtype()) < 4
          ? primitive::cast(n, DType::int32)
          : primitive::cast(clip(n, is_signed_integer(n.dtype()) ? -5000 : 0, 5000), DType::int32)};
  const Shape shapes[] = {both[0].shape(), both[1].shape()};
  const Shape shape = api::common_shape("ldexp", shapes);
  Array y = primitive::broadcast_to(both[0], shape), left = primitive::broadcast_to(both[1], shape);
  const FloatLayout layout = layout_of(y.dtype());
  const int lowest = 1 - layout.bias, down = lowest + layout.fraction_bits + 1;
  for (int k = 0; k < 2; k++) {
    const Array upwards = primitive::binary(op_min, left, primitive::like(left, layout.bias));
    const Array step = primitive::select(left < lowest, primitive::like(left, down), upwards);
    y = y * two_to(step, y.dtype());
    left = left - step;
  }
  left = primitive::binary(op_max, primitive::binary(op_min, left, primitive::like(left, layout.bias)),
                           primitive::like(left, lowest));
  return primitive::cast(y * two_to(left, y.dtype()), t.dtype);
}

// ---------------------------------------------------------------- selection
Array select(const std::vector<Array>& conditions, const std::vector<Array>& choices, const Array& otherwise,
             Where w) {
  const Site site(w, "select");
  if (conditions.empty() || conditions.size() != choices.size())
    throw ShapeError(fmt::format(
        "select: {}, {}. Every condition has its choice, and there is one at least. Give as many of both.",
        count_text(conditions.size(), "condition"), count_text(choices.size(), "choice")));
  // one common type: promoting in pairs could lose digits or wrap in between
  const WeakType t =
      promote_types(api::promoted_all("select", choices), api::weak_type_of(otherwise, "select"));
  Array r = api::cast(otherwise, t);
  for (std::size_t k = conditions.size(); k-- > 0;) r = where(conditions[k], api::cast(choices[k], t), r);
  return r;
}

}  // namespace shardarray

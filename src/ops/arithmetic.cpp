// add, subtract, multiply, divide, power, rounding, extrema: arithmetic ops of all dtypes, and functions composed of them.
#include <cfloat>
#include <cmath>

#include "ops/complex.h"
#include "ops/function.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

// For bools a different op, or none.
template <const Op& op, const Op* op_of_bool>
static Array arithmetic(const char* function, const Array& a, const Array& b) {
  if (const Type& s = type_of(a, function), &t = type_of(b, function); s == t && t.dtype != DType::bool_)
    return primitive::binary(op, a, b);  // fast path: nothing to convert
  const WeakType t = api::promoted(function, {&a, &b});
  const Op* const chosen = t.dtype == DType::bool_ ? op_of_bool : &op;
  if (chosen == nullptr) api::refuse_dtype(function, a, "It takes numbers; of bools use logical_xor");
  const Arrays x = api::together(function, {&a, &b}, t);
  return primitive::binary(*chosen, x[0], x[1]);
}
// Integers need no rounding.
template <const Op& op> static Array whole(const char* function, const Array& x) {
  api::need_real(function, x);
  return is_floating(x.dtype()) ? primitive::unary(op, x) : x;
}

// An absent tangent or cotangent stays absent.
static Array times(const Array& t, const Array& x) { return t.has_value() ? primitive::mul(t, x) : Array(); }
static Array minus(const Array& t) { return t.has_value() ? primitive::neg(t) : Array(); }
static bool same(const Array& a, const Array& b) { return a.node() == b.node() && a.index() == b.index(); }

// JAX's derivative of min and max: ties split it equally.
static Array share_of(const Array& mine, const Array& out, const Array& other) {
  const Array tie = primitive::select(primitive::binary(op_eq, other, out), primitive::like(out, 0.5),
                                      primitive::like(out, 1));
  return primitive::select(primitive::binary(op_eq, mine, out), tie, primitive::like(out, 0));
}
static Arrays extremum_jvp(const JvpArgs& v) {
  const auto& t = v.tangents;
  return {add_or(t[0].has_value() ? times(t[0], share_of(v.in[0], v.out[0], v.in[1])) : Array(),
                 t[1].has_value() ? times(t[1], share_of(v.in[1], v.out[0], v.in[0])) : Array())};
}

// Selects 1, -1, or x itself (zeros and NaN).
static void emit_sign(ScalarArgs& s) {
  const DType t = s.b.type(s.in[0]);
  const int zero = s.b.constant(t, 0), positive = s.b.binary(Code::gt, s.in[0], zero);
  const int rest = is_unsigned_integer(t)
                       ? s.in[0]
                       : s.b.select(s.b.binary(Code::lt, s.in[0], zero), s.b.constant(t, -1), s.in[0]);
  s.out[0] = s.b.select(positive, s.b.constant(t, 1), rest);
}

// Integers: square and multiply over six bits of the exponent; larger ones overflow for any |x| > 1. 0 to a negative power is 0.
static void emit_pow(ScalarArgs& s) {
  KernelBuilder& b = s.b;
  int x = s.in[0], y = s.in[1];
  const DType t = b.type(x);
  if (!is_integer(t)) {
    s.out[0] = expand::pow(b, x, y);
    return;
  }
  const int zero = b.constant(t, 0), one = b.constant(t, 1);
  const int vanishes = b.binary(Code::and_, b.binary(Code::eq, x, zero), b.binary(Code::ne, y, zero));
  int result = b.select(vanishes, zero, one);
  for (int bit = 0; bit < 6; bit++) {
    const int set = b.binary(Code::ne, b.binary(Code::and_, y, one), zero);
    result = b.select(set, b.binary(Code::mul, result, x), result);
    x = b.binary(Code::mul, x, x);
    y = b.binary(Code::shr, y, one);
  }
  s.out[0] = result;
}

// d/dx = y x^(y-1), for y = 0 even where 1 / x is infinite (for complex x: everywhere); d/dy = log(x) x^y, with log(1) at x = 0.
static Arrays pow_jvp(const JvpArgs& v) {
  const Array &x = v.in[0], &y = v.in[1], one = primitive::like(x, 1);
  Array t;
  if (v.tangents[0].has_value()) {
    Array no_power = primitive::binary(op_eq, y, primitive::like(y, 0));
    if (is_floating(x.dtype())) {
      const DType d = x.dtype();
      const double least = d == DType::float64 ? DBL_MIN : d == DType::float16 ? 0x1p-14 : FLT_MIN;
      const Array steep = primitive::binary(op_lt, primitive::unary(op_abs, x), primitive::like(x, least));
      no_power = primitive::binary(op_and, no_power, steep);
    }
    const Array less = primitive::select(no_power, one, primitive::sub(y, one));
    t = primitive::mul(v.tangents[0], primitive::mul(y, primitive::binary(op_pow, x, less)));
  }
  if (v.tangents[1].has_value()) {
    const Array base = primitive::select(primitive::binary(op_eq, x, primitive::like(x, 0)), one, x);
    t = add_or(t, primitive::mul(v.tangents[1], primitive::mul(primitive::unary(op_log, base), v.out[0])));
  }
  return {t};
}

SHARDARRAY_OP op_add =
    elementwise({.name = "add",
                 .type = same_type,
                 .linearity = joint,
                 .jvp = [](const JvpArgs& v) { return Arrays{add_or(v.tangents[0], v.tangents[1])}; },
                 .transpose =
                     [](const TransposeArgs& t) {
                       return Arrays{t.cotangents[0], t.cotangents[0]};
                     },
                 .scalar = emit_binary<Code::add>,
                 .on_parts = complex_ops::each_part<op_add>});
template <> constexpr BinaryBody binary_body<"add"> = arithmetic<op_add, &op_or>;
template SHARDARRAY_API Array BinaryFunction<"add">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_sub = elementwise(
    {.name = "sub",
     .type = same_type,
     .linearity = joint,
     .jvp =
         [](const JvpArgs& v) {
           const auto& t = v.tangents;
           return Arrays{t[0].has_value() && t[1].has_value() ? primitive::sub(t[0], t[1])
                         : t[0].has_value()                   ? t[0]
                                                              : minus(t[1])};
         },
     .transpose =
         [](const TransposeArgs& t) {
           return Arrays{t.cotangents[0], t.linear[1] ? primitive::neg(t.cotangents[0]) : Array()};
         },
     .scalar = emit_binary<Code::sub>,
     .on_parts = complex_ops::each_part<op_sub>});
template <> constexpr BinaryBody binary_body<"subtract"> = arithmetic<op_sub, nullptr>;
template SHARDARRAY_API Array BinaryFunction<"subtract">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_mul =
    elementwise({.name = "mul",
                 .type = same_type,
                 .linearity =
                     [](const Call& c, int operand) {
                       int exponent = 0;
                       const bool shrinks = is_power_of_two(c, 1 - operand, exponent) && exponent <= 0;
                       return shrinks ? Linear::each : each_of_product(c, operand);
                     },
                 .jvp =
                     [](const JvpArgs& v) {
                       if (same(v.in[0], v.in[1])) return scaled(v, primitive::add(v.in[0], v.in[0]));
                       return Arrays{add_or(times(v.tangents[0], v.in[1]), times(v.tangents[1], v.in[0]))};
                     },
                 .transpose =
                     [](const TransposeArgs& t) {
                       return Arrays{t.linear[0] ? primitive::mul(t.cotangents[0], t.in[1]) : Array(),
                                     t.linear[1] ? primitive::mul(t.cotangents[0], t.in[0]) : Array()};
                     },
                 .scalar = emit_binary<Code::mul>,
                 .on_parts = complex_ops::mul});
template <> constexpr BinaryBody binary_body<"multiply"> = arithmetic<op_mul, &op_and>;
template SHARDARRAY_API Array BinaryFunction<"multiply">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_div = elementwise(
    {.name = "div",
     .type = same_type,
     .linearity =
         [](const Call& c, int operand) {
           int exponent = 0;
           const bool scales = (is_power_of_two(c, 1, exponent) && exponent >= 0) ||
                               (c.summands_asked && is_inexact(c.in[0].dtype));
           return operand == 0 && scales ? Linear::each : Linear::no;
         },
     .jvp =
         [](const JvpArgs& v) {
           const auto& t = v.tangents;
           return Arrays{add_or(t[0].has_value() ? primitive::div(t[0], v.in[1]) : Array(),
                                t[1].has_value()
                                    ? primitive::neg(primitive::div(primitive::mul(t[1], v.out[0]), v.in[1]))
                                    : Array())};
         },
     .transpose =
         [](const TransposeArgs& t) {
           return Arrays{primitive::div(t.cotangents[0], t.in[1]), Array()};
         },
     .scalar = emit_binary<Code::div>,
     .on_parts = complex_ops::div});
template <> constexpr BinaryBody binary_body<"divide"> = floating<op_div>;
template SHARDARRAY_API Array BinaryFunction<"divide">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_rem = elementwise(
    {.name = "rem",
     .type = same_type,
     .jvp =
         [](const JvpArgs& v) {
           return Arrays{
               add_or(v.tangents[0],
                      v.tangents[1].has_value()
                          ? primitive::neg(primitive::mul(
                                v.tangents[1], primitive::unary(op_trunc, primitive::div(v.in[0], v.in[1]))))
                          : Array())};
         },
     .scalar = emit_binary<Code::rem>});

SHARDARRAY_OP op_min = elementwise({.name = "min",
                                    .type = same_type,
                                    .jvp = extremum_jvp,
                                    .scalar = emit_binary<Code::min>,
                                    .on_parts = complex_ops::of_two<complex_ops::min>});
template <> constexpr BinaryBody binary_body<"minimum"> = arithmetic<op_min, &op_and>;
template SHARDARRAY_API Array BinaryFunction<"minimum">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_max = elementwise({.name = "max",
                                    .type = same_type,
                                    .jvp = extremum_jvp,
                                    .scalar = emit_binary<Code::max>,
                                    .on_parts = complex_ops::of_two<complex_ops::max>});
template <> constexpr BinaryBody binary_body<"maximum"> = arithmetic<op_max, &op_or>;
template SHARDARRAY_API Array BinaryFunction<"maximum">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_pow = elementwise({.name = "pow",
                                    .type = same_type,
                                    .jvp = pow_jvp,
                                    .scalar = emit_pow,
                                    .on_parts = complex_ops::of_two<complex_ops::pow>});

// x^-n, n = attrs.lo[0] > 0: differentiating 1 / x^n by the chain rule would give NaN where x^n is 0 or infinite.
static Array integer_power(Array x, std::int64_t exponent);
SHARDARRAY_OP op_inverse_power =
    elementwise({.name = "inverse_power",
                 .jvp =
                     [](const JvpArgs& v) {
                       const std::int64_t n = v.node.attrs().lo[0];
                       const Array slope = primitive::mul(primitive::like(v.in[0], static_cast<double>(-n)),
                                                          integer_power(v.in[0], -n - 1));
                       return Arrays{primitive::mul(v.tangents[0], slope)};
                     },
                 .scalar =
                     [](ScalarArgs& s) {
                       int x = s.in[0], power = -1;
                       for (std::int64_t n = s.call.attrs->lo[0]; n > 0; n >>= 1) {
                         if (n & 1) power = power < 0 ? x : s.b.binary(Code::mul, power, x);
                         if (n > 1) x = s.b.binary(Code::mul, x, x);
                       }
                       s.out[0] = s.b.binary(Code::div, s.b.constant(s.b.type(power), 1), power);
                     }});

// Square and multiply.
static Array integer_power(Array x, std::int64_t exponent) {
  constexpr std::int64_t most = std::int64_t{1} << 32;  // in float64 only 1 has larger powers
  const bool inverted = exponent < 0;
  if (inverted && exponent > -most && is_floating(x.dtype())) {
    Attrs attrs;
    attrs.lo = {-exponent};
    return record(op_inverse_power, {x}, std::move(attrs));
  }
  std::uint64_t n =
      inverted ? 0 - static_cast<std::uint64_t>(exponent) : static_cast<std::uint64_t>(exponent);
  if (n == 0) return one_of(type_of(x));
  Array result;
  for (;; x = primitive::mul(x, x)) {
    if (n & 1) result = result.has_value() ? primitive::mul(result, x) : x;
    n >>= 1;
    if (n == 0) break;
  }
  return inverted ? primitive::div(primitive::like(result, 1), result) : result;
}
template <>
constexpr BinaryBody binary_body<"power"> = [](const char* function, const Array& a, const Array& b) {
  const WeakType base = api::weak_type_of(a, function), exponent = api::weak_type_of(b, function);
  std::int64_t n = 0;
  if (primitive::is_literal_int(b, n)) {
    if (n < 0 && !is_inexact(base.dtype))
      api::refuse_dtype(function, a, "Integers cannot be raised to negative powers");
    return integer_power(api::cast(a, api::counted(base)), n);
  }
  WeakType t = api::counted(promote_types(base, exponent));
  // a weak base becomes strong by a strong exponent, unless that is only bool
  if (base.weak && !exponent.weak && (is_integer(exponent.dtype) || is_integer(base.dtype))) t.weak = false;
  const Arrays x = api::together(function, {&a, &b}, t);
  return primitive::binary(op_pow, x[0], x[1]);
};
template SHARDARRAY_API Array BinaryFunction<"power">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_fma = elementwise(
    {.name = "fma",
     .type = same_type,
     .jvp =
         [](const JvpArgs& v) {
           return Arrays{
               add_or(add_or(times(v.tangents[0], v.in[1]), times(v.tangents[1], v.in[0])), v.tangents[2])};
         },
     .scalar = [](ScalarArgs& s) { s.out[0] = s.b.fma(s.in[0], s.in[1], s.in[2]); },
     .on_parts = complex_ops::fma});
Array fma(const Operand& a, const Operand& b, const Operand& c) {
  const Site site(a.where, "fma");
  const Array x = a.value(), y = b.value(), z = c.value();
  return record(op_fma,
                api::together("fma", {&x, &y, &z}, api::to_inexact(api::promoted("fma", {&x, &y, &z}))));
}

SHARDARRAY_OP op_neg =
    elementwise({.name = "neg",
                 .linearity = joint,
                 .transpose = [](const TransposeArgs& t) { return Arrays{primitive::neg(t.cotangents[0])}; },
                 .scalar = emit_unary<Code::neg>,
                 .on_parts = complex_ops::each_part<op_neg>});
template <>
constexpr UnaryBody unary_body<"negative"> = [](const char* function, const Array& x) {
  if (api::weak_type_of(x, function).dtype == DType::bool_)
    api::refuse_dtype(function, x, "It takes numbers; of bools use logical_not");
  return primitive::neg(x);
};
template SHARDARRAY_API Array UnaryFunction<"negative">::operator()(const Array&, Where) const;

// The derivative at zero is 1, as in JAX.
SHARDARRAY_OP op_abs =
    elementwise({.name = "abs",
                 .jvp =
                     [](const JvpArgs& v) {
                       const Array &x = v.in[0], &t = v.tangents[0];
                       return Arrays{primitive::select(primitive::binary(op_ge, x, primitive::like(x, 0)), t,
                                                       primitive::neg(t))};
                     },
                 .scalar = emit_unary<Code::abs>,
                 .on_parts = complex_ops::real_of_one<complex_ops::abs>});
template <>
constexpr UnaryBody unary_body<"abs"> = [](const char* function, const Array& x) {
  const DType t = api::weak_type_of(x, function).dtype;
  return t == DType::bool_ || is_unsigned_integer(t) ? x : primitive::unary(op_abs, x);
};
template SHARDARRAY_API Array UnaryFunction<"abs">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_sign = elementwise({.name = "sign",
                                     .jvp = no_tangent,
                                     .scalar = emit_sign,
                                     .on_parts = complex_ops::of_one<complex_ops::sign>});
template <>
constexpr UnaryBody unary_body<"sign"> = [](const char* function, const Array& x) {
  if (api::weak_type_of(x, function).dtype == DType::bool_)
    api::refuse_dtype(function, x, "It takes numbers");
  return primitive::unary(op_sign, x);
};
template SHARDARRAY_API Array UnaryFunction<"sign">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_floor = elementwise({.name = "floor", .jvp = no_tangent, .scalar = emit_unary<Code::floor>});
template <> constexpr UnaryBody unary_body<"floor"> = whole<op_floor>;
template SHARDARRAY_API Array UnaryFunction<"floor">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_ceil = elementwise({.name = "ceil", .jvp = no_tangent, .scalar = emit_unary<Code::ceil>});
template <> constexpr UnaryBody unary_body<"ceil"> = whole<op_ceil>;
template SHARDARRAY_API Array UnaryFunction<"ceil">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_round = elementwise({.name = "round", .jvp = no_tangent, .scalar = emit_unary<Code::round>});
Array round(const Operand& operand, int decimals) {
  const Site site(operand.where, "round");
  const Array x = operand.value();
  if (api::weak_type_of(x, "round").dtype == DType::bool_) api::refuse_dtype("round", x, "It takes numbers");
  if (is_complex(x.dtype()))
    return primitive::pair(round(primitive::real(x), decimals), round(primitive::imag(x), decimals));
  if (decimals == 0 || !is_floating(x.dtype())) return whole<op_round>("round", x);
  const WeakType t = api::weak_type_of(x, "round");
  const Array y = api::cast(x, api::computed(t));
  // with fewer decimals everything rounds to zero
  const int fewest = y.dtype() == DType::float64 ? -309 : -39;
  const Array factor = primitive::like(y, std::pow(10.0, std::max(decimals, fewest)));
  const Array shifted = primitive::mul(y, factor);
  const Array rounded = primitive::div(primitive::unary(op_round, shifted), factor);
  // on overflow x has no such decimals; the derivative is 0 even then
  return api::cast(primitive::select(primitive::unary(op_is_finite, shifted), rounded,
                                     primitive::unary(op_stop_gradient, y)),
                   t);
}
Array round(const Operand& operand, RoundingMethod method) {
  const Site site(operand.where, "round");
  const Array x = operand.value();
  if (is_complex(api::weak_type_of(x, "round").dtype)) api::refuse_dtype("round", x, "It takes real numbers");
  if (method == RoundingMethod::to_nearest_even || !is_floating(x.dtype())) return round(x);
  // exact: the fraction has no more digits than x
  const Array towards_zero = primitive::unary(op_trunc, x);
  const Array behind = primitive::unary(op_abs, primitive::sub(x, towards_zero));
  const Array further = primitive::add(towards_zero, primitive::unary(op_sign, x));
  return primitive::select(primitive::binary(op_ge, behind, primitive::like(behind, 0.5)), further,
                           towards_zero);
}

SHARDARRAY_OP op_trunc = elementwise({.name = "trunc", .jvp = no_tangent, .scalar = emit_unary<Code::trunc>});
template <> constexpr UnaryBody unary_body<"trunc"> = whole<op_trunc>;
template SHARDARRAY_API Array UnaryFunction<"trunc">::operator()(const Array&, Where) const;

// Not max(x, 0), which would split the gradient at 0.
SHARDARRAY_OP op_relu =
    elementwise({.name = "relu",
                 .jvp =
                     [](const JvpArgs& v) {
                       const Array zero = primitive::like(v.in[0], 0);
                       return Arrays{primitive::select(primitive::binary(op_gt, v.in[0], zero), v.tangents[0],
                                                       zeros_of(type_of(v.tangents[0])))};
                     },
                 .scalar =
                     [](ScalarArgs& s) {
                       s.out[0] = s.b.binary(Code::max, s.in[0], s.b.constant(s.b.type(s.in[0]), 0));
                     }});
template <>
constexpr UnaryBody unary_body<"relu"> = [](const char* function, const Array& x) {
  return primitive::unary(op_relu, api::cast(x, api::counted(api::weak_type_of(x, function))));
};
template SHARDARRAY_API Array UnaryFunction<"relu">::operator()(const Array&, Where) const;

// ---------------------------------------------------------------- division with remainder
namespace {

struct Division {
  WeakType type;  // of the result; 16-bit floats are divided in float32, so that only the result is rounded
  Arrays x;       // a, b
  Array zero;
  Array rest;     // remainder of the truncated division: has the sign of a
  Array differs;  // the remainder is nonzero and its sign differs from b's
};

}  // namespace
static Division divided(const char* function, const Array& a, const Array& b) {
  api::need_real(function, a);
  api::need_real(function, b);
  Division d;
  d.type = api::counted(api::promoted(function, {&a, &b}));
  d.x = api::together(function, {&a, &b}, d.type);
  const WeakType wide = api::computed(d.type);
  for (Array& x : d.x) x = primitive::cast(x, wide.dtype, wide.weak);
  d.zero = primitive::like(d.x[0], 0);
  d.rest = primitive::binary(op_rem, d.x[0], d.x[1]);
  if (is_unsigned_integer(d.rest.dtype())) return d;
  const Array signs = primitive::binary(op_ne, primitive::binary(op_lt, d.rest, d.zero),
                                        primitive::binary(op_lt, d.x[1], d.zero));
  d.differs = primitive::binary(op_and, signs, primitive::binary(op_ne, d.rest, d.zero));
  if (is_integer(d.rest.dtype()))
    d.differs = primitive::binary(op_and, d.differs, primitive::binary(op_ne, d.x[1], d.zero));
  return d;
}
template <>
constexpr BinaryBody binary_body<"floor_divide"> = [](const char* function, const Array& a, const Array& b) {
  const Division d = divided(function, a, b);
  const bool is_float = is_floating(d.rest.dtype());
  Array quotient = primitive::div(is_float ? primitive::sub(d.x[0], d.rest) : d.x[0], d.x[1]);
  if (!d.differs.has_value()) return quotient;
  Array floored =
      primitive::select(d.differs, primitive::sub(quotient, primitive::like(quotient, 1)), quotient);
  if (!is_float) return floored;
  // for a / 0 the remainder is NaN but the quotient infinite, with zero derivative
  const Array by_zero = primitive::unary(op_stop_gradient, primitive::div(d.x[0], d.x[1]));
  return api::cast(primitive::select(primitive::binary(op_eq, d.x[1], d.zero), by_zero,
                                     primitive::unary(op_round, floored)),
                   d.type);
};
template SHARDARRAY_API Array BinaryFunction<"floor_divide">::operator()(const Array&, const Array&,
                                                                         Where) const;
template <>
constexpr BinaryBody binary_body<"remainder"> = [](const char* function, const Array& a, const Array& b) {
  const Division d = divided(function, a, b);
  if (!d.differs.has_value()) return d.rest;
  return api::cast(primitive::select(d.differs, primitive::add(d.rest, d.x[1]), d.rest), d.type);
};
template SHARDARRAY_API Array BinaryFunction<"remainder">::operator()(const Array&, const Array&,
                                                                      Where) const;

std::pair<Array, Array> divmod_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w, "divmod");
  return {binary_body<"floor_divide">("divmod", a, b), binary_body<"remainder">("divmod", a, b)};
}

// ---------------------------------------------------------------- composed functions
template <>
constexpr UnaryBody unary_body<"square"> = [](const char* function, const Array& x) {
  const Array y = api::cast(x, api::counted(api::weak_type_of(x, function)));
  return is_complex(y.dtype()) ? complex_ops::square(Complex(y)).joined() : primitive::mul(y, y);
};
template SHARDARRAY_API Array UnaryFunction<"square">::operator()(const Array&, Where) const;
template <>
constexpr UnaryBody unary_body<"reciprocal"> = [](const char* function, const Array& x) {
  const Array y = api::cast(x, api::to_inexact(api::weak_type_of(x, function)));
  return primitive::div(primitive::like(y, 1), y);
};
template SHARDARRAY_API Array UnaryFunction<"reciprocal">::operator()(const Array&, Where) const;
Array clip_fn::operator()(const Array& x, const Array& lo, const Array& hi, Where w) const {
  const Site site(w, "clip");
  return minimum(hi, maximum(lo, x));
}
Array clip_fn::operator()(const Array& x, const Array& lo, none_t, Where w) const {
  const Site site(w, "clip");
  return maximum(lo, x);
}
Array clip_fn::operator()(const Array& x, none_t, const Array& hi, Where w) const {
  const Site site(w, "clip");
  return minimum(hi, x);
}
Array clamp_fn::operator()(const Array& lo, const Array& x, const Array& hi, Where w) const {
  const Site site(w, "clamp");
  const WeakType t = api::weak_type_of(x, "clamp");
  const Array low = api::cast(lo, t), high = api::cast(hi, t);
  Array value = minimum(maximum(x, low), high);
  if (!is_floating(t.dtype)) return value;
  const Array of_low = where((low > x) & (low < high), low, stop_gradient(value));
  return primitive::with_slope_of(value, where((x > low) & (x < high), x, where(high < x, high, of_low)));
}

}  // namespace shardarray

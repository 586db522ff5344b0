// Powers, roots, logarithms to other bases, inverse hyperbolic functions, sums of exponentials, angles.
#include <numbers>

#include "ops/complex.h"
#include "ops/function.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

static Array scaled_by(const Array& x, double factor) {
  return primitive::mul(x, primitive::like(x, factor));
}
static Arrays over(const JvpArgs& v, const Array& by) { return {primitive::div(v.tangents[0], by)}; }

SHARDARRAY_OP op_exp2 =
    elementwise({.name = "exp2",
                 .jvp = [](const JvpArgs& v) { return scaled(v, scaled_by(v.out[0], std::numbers::ln2)); },
                 .scalar = emit_function<expand::exp2>,
                 .on_parts = complex_ops::of_one<complex_ops::exp2>});
template <> constexpr UnaryBody unary_body<"exp2"> = floating<op_exp2>;
template SHARDARRAY_API Array UnaryFunction<"exp2">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_log2 =
    elementwise({.name = "log2",
                 .jvp = [](const JvpArgs& v) { return over(v, scaled_by(v.in[0], std::numbers::ln2)); },
                 .scalar = emit_function<expand::log2>,
                 .on_parts = complex_ops::of_one<complex_ops::log2>});
template <> constexpr UnaryBody unary_body<"log2"> = strong<floating<op_log2>>;
template SHARDARRAY_API Array UnaryFunction<"log2">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_log10 =
    elementwise({.name = "log10",
                 .jvp = [](const JvpArgs& v) { return over(v, scaled_by(v.in[0], std::numbers::ln10)); },
                 .scalar = emit_function<expand::log10>,
                 .on_parts = complex_ops::of_one<complex_ops::log10>});
template <> constexpr UnaryBody unary_body<"log10"> = strong<floating<op_log10>>;
template SHARDARRAY_API Array UnaryFunction<"log10">::operator()(const Array&, Where) const;

static Arrays cbrt_jvp(const JvpArgs& v) {
  Attrs attrs;
  attrs.lo = {2};
  return scaled(v, scaled_by(record(op_inverse_power, {v.out[0]}, std::move(attrs)), 1.0 / 3));
}
SHARDARRAY_OP op_cbrt = elementwise({.name = "cbrt", .jvp = cbrt_jvp, .scalar = emit_function<expand::cbrt>});
template <> constexpr UnaryBody unary_body<"cbrt"> = floating<op_cbrt>;
template SHARDARRAY_API Array UnaryFunction<"cbrt">::operator()(const Array&, Where) const;

// x / out; 0.5 at the origin, as in JAX.
static Arrays hypot_jvp(const JvpArgs& v) {
  const Array &out = v.out[0], origin = primitive::binary(op_eq, out, primitive::like(out, 0));
  Array t;
  for (std::size_t k = 0; k < 2; k++) {
    if (!v.tangents[k].has_value()) continue;
    const Array by = primitive::select(origin, primitive::like(out, 1), out);
    const Array share = primitive::select(origin, primitive::like(out, 0.5), primitive::div(v.in[k], by));
    t = add_or(t, primitive::mul(v.tangents[k], share));
  }
  return {t};
}
SHARDARRAY_OP op_hypot =
    elementwise({.name = "hypot", .type = same_type, .jvp = hypot_jvp, .scalar = [](ScalarArgs& s) {
                   s.out[0] = expand::hypot(s.b, s.in[0], s.in[1]);
                 }});
template <> constexpr BinaryBody binary_body<"hypot"> = strong_array<floating<op_hypot>>;
template SHARDARRAY_API Array BinaryFunction<"hypot">::operator()(const Array&, const Array&, Where) const;

SHARDARRAY_OP op_asinh =
    elementwise({.name = "asinh",
                 .jvp =
                     [](const JvpArgs& v) {  // squaring would overflow
                       return over(v, primitive::binary(op_hypot, v.in[0], primitive::like(v.in[0], 1)));
                     },
                 .scalar = emit_function<expand::asinh>,
                 .on_parts = complex_ops::of_one<complex_ops::asinh>});
template <> constexpr UnaryBody unary_body<"arcsinh"> = floating<op_asinh>;
template SHARDARRAY_API Array UnaryFunction<"arcsinh">::operator()(const Array&, Where) const;

// 1 / (sqrt(x - 1) sqrt(x + 1)): NaN below 1.
SHARDARRAY_OP op_acosh =
    elementwise({.name = "acosh",
                 .jvp =
                     [](const JvpArgs& v) {
                       const Array &x = v.in[0], one = primitive::like(x, 1);
                       return scaled(v, primitive::mul(primitive::unary(op_rsqrt, primitive::sub(x, one)),
                                                       primitive::unary(op_rsqrt, primitive::add(x, one))));
                     },
                 .scalar = emit_function<expand::acosh>,
                 .on_parts = complex_ops::of_one<complex_ops::acosh>});
template <> constexpr UnaryBody unary_body<"arccosh"> = floating<op_acosh>;
template SHARDARRAY_API Array UnaryFunction<"arccosh">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_atanh =
    elementwise({.name = "atanh",
                 .jvp =
                     [](const JvpArgs& v) {
                       const Array &x = v.in[0], one = primitive::like(x, 1);
                       return over(v, primitive::mul(primitive::add(one, x), primitive::sub(one, x)));
                     },
                 .scalar = emit_function<expand::atanh>,
                 .on_parts = complex_ops::of_one<complex_ops::atanh>});
template <> constexpr UnaryBody unary_body<"arctanh"> = floating<op_atanh>;
template SHARDARRAY_API Array UnaryFunction<"arctanh">::operator()(const Array&, Where) const;

// exp(x - out), which is 1 where x equals the result, even for infinities.
static Arrays logaddexp_jvp(const JvpArgs& v) {
  const Array& out = v.out[0];
  const bool base2 = !v.node.attrs().lo.empty();
  Array t;
  for (std::size_t k = 0; k < 2; k++) {
    if (!v.tangents[k].has_value()) continue;
    // inf - inf is NaN; the share has no derivative there
    const Array all_of_it = primitive::binary(op_eq, v.in[k], out),
                less = primitive::select(all_of_it, primitive::like(out, 0), primitive::sub(v.in[k], out));
    const Array share = primitive::exp(base2 ? scaled_by(less, std::numbers::ln2) : less);
    t = add_or(t, primitive::mul(v.tangents[k], share));
  }
  return {t};
}
// attrs.lo = {2}: base 2.
SHARDARRAY_OP op_logaddexp =
    elementwise({.name = "logaddexp", .type = same_type, .jvp = logaddexp_jvp, .scalar = [](ScalarArgs& s) {
                   s.out[0] = expand::logaddexp(s.b, s.in[0], s.in[1], !s.call.attrs->lo.empty());
                 }});
template <> constexpr BinaryBody binary_body<"logaddexp"> = floating<op_logaddexp>;
template SHARDARRAY_API Array BinaryFunction<"logaddexp">::operator()(const Array&, const Array&,
                                                                      Where) const;
template <>
constexpr BinaryBody binary_body<"logaddexp2"> = [](const char* function, const Array& a, const Array& b) {
  Attrs base;
  base.lo = {2};
  return api::strong_array(record(op_logaddexp, api::floats_together(function, {&a, &b}), std::move(base)));
};
template SHARDARRAY_API Array BinaryFunction<"logaddexp2">::operator()(const Array&, const Array&,
                                                                       Where) const;

template <> constexpr BinaryBody binary_body<"float_power"> = floating<op_pow>;
template SHARDARRAY_API Array BinaryFunction<"float_power">::operator()(const Array&, const Array&,
                                                                        Where) const;

static Array degrees_of(const Array& x) { return scaled_by(x, 180 / std::numbers::pi); }
static Array radians_of(const Array& x) { return scaled_by(x, std::numbers::pi / 180); }
template <> constexpr UnaryBody unary_body<"degrees"> = strong_array<rounded<degrees_of>>;
template SHARDARRAY_API Array UnaryFunction<"degrees">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"radians"> = strong_array<rounded<radians_of>>;
template SHARDARRAY_API Array UnaryFunction<"radians">::operator()(const Array&, Where) const;

}  // namespace shardarray

// Elementary functions of floats, and activations composed of them.
#include <cmath>
#include <numbers>

#include "ops/complex.h"
#include "ops/function.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

extern const Op op_cos, op_cosh;  // needed by the derivatives of sin and sinh

static Array squared(const Array& x) { return primitive::mul(x, x); }
// 1 - x^2 without cancellation near |x| = 1. The derivative is that of 1 - x^2: an infinite tangent would make the product's NaN.
static Array one_minus_square(const Array& x) {
  const Array one = primitive::like(x, 1);
  return primitive::with_slope_of(primitive::mul(primitive::add(one, x), primitive::sub(one, x)),
                                  primitive::sub(one, squared(x)));
}
static Arrays divided(const JvpArgs& v, const Array& by) { return {primitive::div(v.tangents[0], by)}; }

// x / r^2 and -y / r^2, multiplying by 1 / r twice: r^2 may overflow or underflow.
static Arrays atan2_jvp(const JvpArgs& v) {
  const Array &y = v.in[0], &x = v.in[1];
  const Array by = primitive::div(primitive::like(x, 1), primitive::binary(op_hypot, x, y));
  const auto share = [&](const Array& part) { return primitive::mul(primitive::mul(part, by), by); };
  Array t;
  if (v.tangents[0].has_value()) t = primitive::mul(v.tangents[0], share(x));
  if (v.tangents[1].has_value()) t = add_or(t, primitive::mul(v.tangents[1], primitive::neg(share(y))));
  return {t};
}

SHARDARRAY_OP op_exp = elementwise({.name = "exp",
                                    .jvp = [](const JvpArgs& v) { return scaled(v, v.out[0]); },
                                    .scalar = emit_function<expand::exp>,
                                    .on_parts = complex_ops::of_one<complex_ops::exp>});
template <> constexpr UnaryBody unary_body<"exp"> = floating<op_exp>;
template SHARDARRAY_API Array UnaryFunction<"exp">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_expm1 = elementwise(
    {.name = "expm1",
     .jvp =
         [](const JvpArgs& v) { return scaled(v, primitive::add(v.out[0], primitive::like(v.out[0], 1))); },
     .scalar = emit_function<expand::expm1>,
     .on_parts = complex_ops::of_one<complex_ops::expm1>});
template <> constexpr UnaryBody unary_body<"expm1"> = floating<op_expm1>;
template SHARDARRAY_API Array UnaryFunction<"expm1">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_log = elementwise({.name = "log",
                                    .jvp = [](const JvpArgs& v) { return divided(v, v.in[0]); },
                                    .scalar = emit_function<expand::log>,
                                    .on_parts = complex_ops::of_one<complex_ops::log>});
template <> constexpr UnaryBody unary_body<"log"> = floating<op_log>;
template SHARDARRAY_API Array UnaryFunction<"log">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_log1p = elementwise(
    {.name = "log1p",
     .jvp = [](const JvpArgs& v) { return divided(v, primitive::add(v.in[0], primitive::like(v.in[0], 1))); },
     .scalar = emit_function<expand::log1p>,
     .on_parts = complex_ops::of_one<complex_ops::log1p>});
template <> constexpr UnaryBody unary_body<"log1p"> = floating<op_log1p>;
template SHARDARRAY_API Array UnaryFunction<"log1p">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_sqrt = elementwise(
    {.name = "sqrt",
     .jvp =
         [](const JvpArgs& v) { return scaled(v, primitive::div(primitive::like(v.out[0], 0.5), v.out[0])); },
     .scalar = emit_unary<Code::sqrt>,
     .on_parts = complex_ops::of_one<complex_ops::sqrt>});
template <> constexpr UnaryBody unary_body<"sqrt"> = floating<op_sqrt>;
template SHARDARRAY_API Array UnaryFunction<"sqrt">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_rsqrt =
    elementwise({.name = "rsqrt",
                 .jvp =
                     [](const JvpArgs& v) {
                       return scaled(v, primitive::mul(primitive::like(v.out[0], -0.5),
                                                       primitive::div(v.out[0], v.in[0])));
                     },
                 .scalar =
                     [](ScalarArgs& s) {
                       const int one = s.b.constant(s.b.type(s.in[0]), 1);
                       s.out[0] = s.b.binary(Code::div, one, s.b.unary(Code::sqrt, s.in[0]));
                     },
                 .on_parts = complex_ops::of_one<complex_ops::rsqrt>});
template <> constexpr UnaryBody unary_body<"rsqrt"> = floating<op_rsqrt>;
template SHARDARRAY_API Array UnaryFunction<"rsqrt">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_sin =
    elementwise({.name = "sin",
                 .jvp = [](const JvpArgs& v) { return scaled(v, primitive::unary(op_cos, v.in[0])); },
                 .scalar = emit_function<expand::sin>,
                 .on_parts = complex_ops::of_one<complex_ops::sin>});
template <> constexpr UnaryBody unary_body<"sin"> = floating<op_sin>;
template SHARDARRAY_API Array UnaryFunction<"sin">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_cos = elementwise(
    {.name = "cos",
     .jvp = [](const JvpArgs& v) { return scaled(v, primitive::neg(primitive::unary(op_sin, v.in[0]))); },
     .scalar = emit_function<expand::cos>,
     .on_parts = complex_ops::of_one<complex_ops::cos>});
template <> constexpr UnaryBody unary_body<"cos"> = floating<op_cos>;
template SHARDARRAY_API Array UnaryFunction<"cos">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_tan =
    elementwise({.name = "tan",
                 .jvp =
                     [](const JvpArgs& v) {
                       return scaled(v, primitive::add(primitive::like(v.out[0], 1), squared(v.out[0])));
                     },
                 .scalar = emit_function<expand::tan>,
                 .on_parts = complex_ops::of_one<complex_ops::tan>});
template <> constexpr UnaryBody unary_body<"tan"> = floating<op_tan>;
template SHARDARRAY_API Array UnaryFunction<"tan">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_tanh =
    elementwise({.name = "tanh",
                 .jvp = [](const JvpArgs& v) { return scaled(v, one_minus_square(v.out[0])); },
                 .scalar = emit_function<expand::tanh>,
                 .on_parts = complex_ops::of_one<complex_ops::tanh>});
template <> constexpr UnaryBody unary_body<"tanh"> = floating<op_tanh>;
template SHARDARRAY_API Array UnaryFunction<"tanh">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_sinh =
    elementwise({.name = "sinh",
                 .jvp = [](const JvpArgs& v) { return scaled(v, primitive::unary(op_cosh, v.in[0])); },
                 .scalar = emit_function<expand::sinh>,
                 .on_parts = complex_ops::of_one<complex_ops::sinh>});
template <> constexpr UnaryBody unary_body<"sinh"> = floating<op_sinh>;
template SHARDARRAY_API Array UnaryFunction<"sinh">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_cosh =
    elementwise({.name = "cosh",
                 .jvp = [](const JvpArgs& v) { return scaled(v, primitive::unary(op_sinh, v.in[0])); },
                 .scalar = emit_function<expand::cosh>,
                 .on_parts = complex_ops::of_one<complex_ops::cosh>});
template <> constexpr UnaryBody unary_body<"cosh"> = floating<op_cosh>;
template SHARDARRAY_API Array UnaryFunction<"cosh">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_asin = elementwise(
    {.name = "asin",
     .jvp = [](const JvpArgs& v) { return scaled(v, primitive::unary(op_rsqrt, one_minus_square(v.in[0]))); },
     .scalar = emit_function<expand::asin>,
     .on_parts = complex_ops::of_one<complex_ops::asin>});
template <> constexpr UnaryBody unary_body<"arcsin"> = floating<op_asin>;
template SHARDARRAY_API Array UnaryFunction<"arcsin">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_acos = elementwise(
    {.name = "acos",
     .jvp =
         [](const JvpArgs& v) {
           return scaled(v, primitive::neg(primitive::unary(op_rsqrt, one_minus_square(v.in[0]))));
         },
     .scalar = emit_function<expand::acos>,
     .on_parts = complex_ops::of_one<complex_ops::acos>});
template <> constexpr UnaryBody unary_body<"arccos"> = floating<op_acos>;
template SHARDARRAY_API Array UnaryFunction<"arccos">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_atan =
    elementwise({.name = "atan",
                 .jvp =
                     [](const JvpArgs& v) {
                       return divided(v, primitive::add(primitive::like(v.in[0], 1), squared(v.in[0])));
                     },
                 .scalar = emit_function<expand::atan>,
                 .on_parts = complex_ops::of_one<complex_ops::atan>});
template <> constexpr UnaryBody unary_body<"arctan"> = floating<op_atan>;
template SHARDARRAY_API Array UnaryFunction<"arctan">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_atan2 =
    elementwise({.name = "atan2",
                 .type = same_type,
                 .jvp = atan2_jvp,
                 .scalar = [](ScalarArgs& s) { s.out[0] = expand::atan2(s.b, s.in[0], s.in[1]); },
                 .on_parts = complex_ops::of_two<complex_ops::atan2>});
template <> constexpr BinaryBody binary_body<"arctan2"> = floating<op_atan2>;
template SHARDARRAY_API Array BinaryFunction<"arctan2">::operator()(const Array&, const Array&, Where) const;
// erf' = 2 / sqrt(pi) exp(-x^2)
static Array bell_of(const Array& x) {
  return primitive::mul(primitive::like(x, 2 * std::numbers::inv_sqrtpi),
                        primitive::exp(primitive::neg(squared(x))));
}

SHARDARRAY_OP op_erf = elementwise({.name = "erf",
                                    .jvp = [](const JvpArgs& v) { return scaled(v, bell_of(v.in[0])); },
                                    .scalar = emit_function<expand::erf>});
template <> constexpr UnaryBody unary_body<"erf"> = floating<op_erf>;
template SHARDARRAY_API Array UnaryFunction<"erf">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_erfc =
    elementwise({.name = "erfc",
                 .jvp = [](const JvpArgs& v) { return scaled(v, primitive::neg(bell_of(v.in[0]))); },
                 .scalar = emit_function<expand::erfc>});
template <> constexpr UnaryBody unary_body<"erfc"> = floating<op_erfc>;
template SHARDARRAY_API Array UnaryFunction<"erfc">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_erf_inv = elementwise(
    {.name = "erf_inv",
     .jvp =
         [](const JvpArgs& v) {
           const Array bell = primitive::exp(squared(v.out[0]));
           return scaled(v, primitive::mul(primitive::like(v.out[0], 0.5 / std::numbers::inv_sqrtpi), bell));
         },
     .scalar = emit_function<expand::erf_inv>});
template <> constexpr UnaryBody unary_body<"erf_inv"> = floating<op_erf_inv>;
template SHARDARRAY_API Array UnaryFunction<"erf_inv">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_logistic = elementwise(
    {.name = "logistic",
     .jvp =
         [](const JvpArgs& v) {
           return scaled(v, primitive::mul(v.out[0], primitive::sub(primitive::like(v.out[0], 1), v.out[0])));
         },
     .scalar = emit_function<expand::logistic>,
     .on_parts = complex_ops::of_one<complex_ops::logistic>});
template <> constexpr UnaryBody unary_body<"sigmoid"> = floating<op_logistic>;
template SHARDARRAY_API Array UnaryFunction<"sigmoid">::operator()(const Array&, Where) const;

// D0 = sin(pi x) / (pi x) and its derivatives: x D[k] + k D[k - 1] is the k-th derivative of sin(pi x) / pi, so D[k] follows from D[k - 1];
// at 0 D[k] is pi^k cos(k pi / 2) / (k + 1).
static void emit_sinc(ScalarArgs& s) {
  using std::numbers::pi;
  KernelBuilder& b = s.b;
  const std::int64_t k = s.call.attrs->lo.empty() ? 0 : s.call.attrs->lo[0];
  const int x = s.in[0], angle = b.binary(Code::mul, x, b.constant(b.type(x), pi));
  const auto number = [&](double v) { return b.constant(b.type(x), v); };
  const int sine = expand::sin(b, angle), is_zero = b.binary(Code::eq, x, number(0));
  int d = b.binary(Code::div, sine, angle);
  for (std::int64_t j = 1; j <= k; j++) {
    const double scale = std::pow(pi, static_cast<double>(j - 1)) * (j % 4 < 2 ? 1 : -1);
    const int wave = b.binary(Code::mul, j % 2 == 0 ? sine : expand::cos(b, angle), number(scale));
    d = b.binary(Code::div, b.binary(Code::sub, wave, b.binary(Code::mul, d, number(static_cast<double>(j)))),
                 x);
  }
  const double sign = k % 4 == 0 ? 1 : -1,
               at_zero = k % 2 ? 0 : sign * std::pow(pi, static_cast<double>(k)) / static_cast<double>(k + 1);
  s.out[0] = b.select(is_zero, number(at_zero), d);
}
static Arrays sinc_jvp(const JvpArgs& v);

// attrs.lo = {k}: the k-th derivative.
SHARDARRAY_OP op_sinc = elementwise({.name = "sinc", .jvp = sinc_jvp, .scalar = emit_sinc});
static Arrays sinc_jvp(const JvpArgs& v) {
  Attrs a = v.node.attrs();
  a.lo = {a.lo.empty() ? 1 : a.lo[0] + 1};
  return scaled(v, record(op_sinc, {v.in[0]}, std::move(a)));
}
template <> constexpr UnaryBody unary_body<"sinc"> = strong_array<floating<op_sinc>>;
template SHARDARRAY_API Array UnaryFunction<"sinc">::operator()(const Array&, Where) const;

// ---------------------------------------------------------------- activations
template <>
constexpr UnaryBody unary_body<"silu"> = [](const char* function, const Array& x) {
  const Array y = api::cast(x, api::to_inexact(api::weak_type_of(x, function)));
  return primitive::mul(y, primitive::unary(op_logistic, y));
};
template SHARDARRAY_API Array UnaryFunction<"silu">::operator()(const Array&, Where) const;
// Exact: 0.5 x erfc(-x / sqrt(2)); 1 + erf would cancel. Approximate: 0.5 (1 + tanh u) = sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3).
Array gelu_fn::operator()(const Array& x, bool approximate, Where w) const {
  const Site site(w, "gelu");
  const WeakType t = {api::to_inexact(api::weak_type_of(x, "gelu")).dtype,
                      false};  // strong, like jax.nn.gelu
  auto times = [](const Array& a, double v) { return primitive::mul(a, primitive::like(a, v)); };
  const auto exact = [&](const Array& y) {
    return primitive::mul(times(y, 0.5), primitive::unary(op_erfc, times(y, -std::numbers::sqrt2 / 2)));
  };
  const auto near = [&](const Array& y) {
    const Array cubic = primitive::add(y, times(primitive::mul(y, primitive::mul(y, y)), 0.044715));
    return primitive::mul(y,
                          primitive::unary(op_logistic, times(cubic, 2 * std::sqrt(2 / std::numbers::pi))));
  };
  return approximate ? api::rounded_once(t, near, x) : api::rounded_once(t, exact, x);
}

}  // namespace shardarray

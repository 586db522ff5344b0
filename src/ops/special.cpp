// Gamma and Bessel functions, the exponential integral, the normal distribution, entropies.
#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "ops/function.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

// The order in attrs.lo, or the default.
static std::int64_t order_or(const Attrs& a, std::int64_t order) { return a.lo.empty() ? order : a.lo[0]; }
static Array of_order(const Op& op, const Array& x, std::int64_t order) {
  Attrs a;
  a.lo = {order};
  return record(op, {x}, std::move(a));
}

static Arrays polygamma_jvp(const JvpArgs& v);
// attrs.lo = {k}: the k-th derivative of log(gamma); default digamma.
SHARDARRAY_OP op_polygamma =
    elementwise({.name = "polygamma", .jvp = polygamma_jvp, .scalar = [](ScalarArgs& s) {
                   const auto order = static_cast<int>(order_or(*s.call.attrs, 1));
                   s.out[0] = expand::polygamma(s.b, s.in[0], order);
                 }});
static Arrays polygamma_jvp(const JvpArgs& v) {
  return scaled(v, of_order(op_polygamma, v.in[0], order_or(v.node.attrs(), 1) + 1));
}
template <> constexpr UnaryBody unary_body<"digamma"> = floating<op_polygamma>;
template SHARDARRAY_API Array UnaryFunction<"digamma">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_lgamma =
    elementwise({.name = "lgamma",
                 .jvp = [](const JvpArgs& v) { return scaled(v, primitive::unary(op_polygamma, v.in[0])); },
                 .scalar = emit_function<expand::lgamma>});
template <> constexpr UnaryBody unary_body<"lgamma"> = floating<op_lgamma>;
template SHARDARRAY_API Array UnaryFunction<"lgamma">::operator()(const Array&, Where) const;

SHARDARRAY_OP op_gamma = elementwise({.name = "gamma",
                                      .jvp =
                                          [](const JvpArgs& v) {
                                            const Array digamma = primitive::unary(op_polygamma, v.in[0]);
                                            return scaled(v, primitive::mul(v.out[0], digamma));
                                          },
                                      .scalar = emit_function<expand::gamma>});
template <> constexpr UnaryBody unary_body<"gamma"> = strong<floating<op_gamma>>;
template SHARDARRAY_API Array UnaryFunction<"gamma">::operator()(const Array&, Where) const;

static Arrays bessel_jvp(const JvpArgs& v);
// attrs.lo = {n}: the modified Bessel function I of order n; default 0.
SHARDARRAY_OP op_bessel_i = elementwise({.name = "bessel_i", .jvp = bessel_jvp, .scalar = [](ScalarArgs& s) {
                                           const auto order = static_cast<int>(order_or(*s.call.attrs, 0));
                                           s.out[0] = expand::bessel_i(s.b, s.in[0], order);
                                         }});
// I0' = I1, In' = (I[n-1] + I[n+1]) / 2.
static Array bessel_slope(const Op& op, const Array& x, std::int64_t n) {
  if (n == 0) return of_order(op, x, 1);
  const Array above = of_order(op, x, n + 1);
  return primitive::mul(primitive::add(of_order(op, x, n - 1), above), primitive::like(above, 0.5));
}
static Arrays bessel_jvp(const JvpArgs& v) {
  return scaled(v, bessel_slope(op_bessel_i, v.in[0], order_or(v.node.attrs(), 0)));
}
static Arrays scaled_bessel_jvp(const JvpArgs& v);
// The same, times exp(-|x|).
SHARDARRAY_OP op_bessel_ie =
    elementwise({.name = "bessel_ie", .jvp = scaled_bessel_jvp, .scalar = [](ScalarArgs& s) {
                   const auto order = static_cast<int>(order_or(*s.call.attrs, 0));
                   s.out[0] = expand::bessel_ie(s.b, s.in[0], order);
                 }});
static Arrays scaled_bessel_jvp(const JvpArgs& v) {
  const Array slope = bessel_slope(op_bessel_ie, v.in[0], order_or(v.node.attrs(), 0));
  return scaled(v, primitive::sub(slope, primitive::mul(primitive::unary(op_sign, v.in[0]), v.out[0])));
}
template <const Op& op, std::int64_t order> static Array bessel(const char* function, const Array& x) {
  return of_order(op, api::cast(x, api::to_inexact(api::weak_type_of(x, function))), order);
}
template <> constexpr UnaryBody unary_body<"i0"> = floating<op_bessel_i>;
template SHARDARRAY_API Array UnaryFunction<"i0">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"i1"> = bessel<op_bessel_i, 1>;
template SHARDARRAY_API Array UnaryFunction<"i1">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"i0e"> = floating<op_bessel_ie>;
template SHARDARRAY_API Array UnaryFunction<"i0e">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"i1e"> = bessel<op_bessel_ie, 1>;
template SHARDARRAY_API Array UnaryFunction<"i1e">::operator()(const Array&, Where) const;

// The derivative is -exp(-x) / x, with -0 treated as 0; NaN below.
static Arrays exp1_jvp(const JvpArgs& v) {
  const Array& x = v.in[0];
  const Array minus = primitive::unary(op_neg, primitive::unary(op_abs, x));
  const Array is_below = primitive::binary(op_lt, x, primitive::like(x, 0));
  return scaled(v, primitive::select(is_below, primitive::like(x, std::numeric_limits<double>::quiet_NaN()),
                                     primitive::div(primitive::exp(minus), minus)));
}
SHARDARRAY_OP op_exp1 = elementwise({.name = "exp1", .jvp = exp1_jvp, .scalar = emit_function<expand::exp1>});
template <> constexpr UnaryBody unary_body<"exp1"> = strong<floating<op_exp1>>;
template SHARDARRAY_API Array UnaryFunction<"exp1">::operator()(const Array&, Where) const;

// The derivative of the inverse is sqrt(2 pi) exp(out^2 / 2).
SHARDARRAY_OP op_ndtri = elementwise(
    {.name = "ndtri",
     .jvp =
         [](const JvpArgs& v) {
           const Array& out = v.out[0];
           const Array half_square = primitive::mul(primitive::mul(out, out), primitive::like(out, 0.5));
           return scaled(
               v, primitive::mul(primitive::exp(half_square),
                                 primitive::like(out, std::numbers::sqrt2 / std::numbers::inv_sqrtpi)));
         },
     .scalar = emit_function<expand::ndtri>});
template <> constexpr UnaryBody unary_body<"ndtri"> = strong<floating<op_ndtri>>;
template SHARDARRAY_API Array UnaryFunction<"ndtri">::operator()(const Array&, Where) const;

// ---------------------------------------------------------------- composed functions
namespace {

Array chosen(const Array& condition, const Array& a, double b) {
  return primitive::select(condition, a, primitive::like(a, b));
}
Array chosen(const Array& condition, double a, const Array& b) {
  return primitive::select(condition, primitive::like(b, a), b);
}

/// By erfc, which is accurate for small results.
Array normal_distribution(const Array& x) {
  return primitive::unary(op_erfc, x * (-std::numbers::sqrt2 / 2)) * 0.5;
}
/// -x log(x), with log(1) where x <= 0. The derivative is -log(x) - 1 everywhere: at 0 and infinity x log(x) gets the derivative of log(x)
/// x with constant log(x).
Array entropy(const Array& x) {
  const Array inside = primitive::unary(op_log, chosen(x <= 0, 1, x));
  const Array end = (x == 0) | (x == std::numeric_limits<double>::infinity());
  const Array steep = primitive::select(end, primitive::unary(op_log, primitive::unary(op_stop_gradient, x)),
                                        primitive::unary(op_log, chosen(end, 1, x)));
  return primitive::with_slope_of(chosen(x < 0, -std::numeric_limits<double>::infinity(), -(x * inside)),
                                  -(x * steep));
}
/// 2 artanh(2x - 1) near 1/2, where the logarithms would cancel; unselected branches get safe arguments.
Array log_odds(const Array& x) {
  const Array middle = (x > 0.25) & (x < 0.75), y = chosen(middle, x, 0.5), z = chosen(middle, 0.5, x);
  return primitive::select(middle, primitive::unary(op_atanh, y * 2 - 1) * 2,
                           primitive::unary(op_log, z) - primitive::unary(op_log1p, -z));
}
/// 0 where x is 0 and log(y) is not finite: uses log(1) there. NaN stays NaN. The derivatives are those of x log(y) at every pole.
Array product_with_log(const Op& logarithm, const Array& x, const Array& y, double pole) {
  const Array no_log = (y <= pole) | (y == std::numeric_limits<double>::infinity());
  return primitive::with_slope_of(
      x * primitive::unary(logarithm, chosen((x == 0) & no_log, pole == 0 ? 1 : 0, y)),
      x * primitive::unary(logarithm, y));
}
Array x_log_y(const Array& x, const Array& y) { return product_with_log(op_log, x, y, 0); }
Array x_log1p_y(const Array& x, const Array& y) { return product_with_log(op_log1p, x, y, -1); }

/// Far to the left the first terms of erfc's asymptotic series, the last of which is below half an ulp; right of 0 log1p of the complement.
/// Unselected branches get safe arguments.
Array log_of_normal(const Array& x) {
  const double low = x.dtype() == DType::float64 ? -20 : -10, high = 0;
  const Array is_low = x <= low, is_high = x > high;
  const Array far = chosen(is_low, x, low), near = chosen(is_low | is_high, 0, x);
  const Array inverse = 1 / (far * far);
  Array series = primitive::like(x, 1);
  for (int k = 8; k > 0; k--) series = 1 - inverse * (2 * k - 1) * series;
  const Array tail =
      -0.5 * far * far - primitive::unary(op_log, -far) +
      primitive::unary(op_log, series * (0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2));
  const Array right = primitive::unary(op_log1p, -normal_distribution(-chosen(is_high, x, high)));
  return primitive::select(
      is_low, tail, primitive::select(is_high, right, primitive::unary(op_log, normal_distribution(near))));
}
Array log_of_beta(const Array& a, const Array& b) {
  return primitive::unary(op_lgamma, a) + primitive::unary(op_lgamma, b) - primitive::unary(op_lgamma, a + b);
}
Array factorial_of(const Array& x) {
  return chosen(x < 0, 0, primitive::exp(primitive::unary(op_lgamma, chosen(x < 0, 0, x) + 1)));
}
/// log(p / q) of positive numbers; a difference of logarithms if the quotient overflows or is denormal. Unselected branches get safe
/// arguments.
Array log_of_ratio(const Array& p, const Array& q) {
  const double least =
      p.dtype() == DType::float64 ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  const Array ratio = p / q, is_number = (ratio >= least) & (ratio < std::numeric_limits<double>::infinity());
  const auto log = [](const Array& x) { return primitive::unary(op_log, x); };
  return primitive::select(is_number, log(chosen(is_number, p, 1) / chosen(is_number, q, 1)),
                           log(chosen(is_number, 1, p)) - log(chosen(is_number, 1, q)));
}
Array relative_entropy(const Array& a, const Array& b) {
  const Array both = (a > 0) & (b > 0), none_of_a = (a == 0) & (b >= 0);
  const Array p = chosen(both, a, 1), q = chosen(both, b, 1);
  const Array of_numbers =
      primitive::select(both, p * log_of_ratio(p, q),
                        chosen(none_of_a, 0, primitive::like(a, std::numeric_limits<double>::infinity())));
  const Array is_nan = (a != a) | (b != b);
  return primitive::select(is_nan, a + b, of_numbers);
}
Array divergence(const Array& a, const Array& b) { return relative_entropy(a, b) - a + b; }
/// By expm1 up to log(2), by log1p above.
Array log_of_rest(const Array& x) {
  const Array is_near = x < std::numbers::ln2;
  return primitive::select(is_near,
                           primitive::unary(op_log, -primitive::unary(op_expm1, -chosen(is_near, x, 0.5))),
                           primitive::unary(op_log1p, -primitive::exp(-chosen(is_near, 1, x))));
}

}  // namespace

Array multigammaln(const Array& a, std::int64_t d, Where w) {
  const Site site(w, "multigammaln");
  if (d < 1) throw Error(fmt::format("multigammaln: the order is {}. It is 1 or more. Give another one.", d));
  const auto order = static_cast<double>(d);
  const auto of_floats = [&](const Array& x) {
    Array r = primitive::like(x, order * (order - 1) / 4 * std::log(std::numbers::pi));
    for (std::int64_t k = 0; k < d; k++) r = r + primitive::unary(op_lgamma, x - static_cast<double>(k) / 2);
    return r;
  };
  return api::rounded_once(api::to_inexact(api::weak_type_of(a, "multigammaln")), of_floats, a);
}

template <> constexpr UnaryBody unary_body<"log_ndtr"> = strong<rounded<log_of_normal>>;
template SHARDARRAY_API Array UnaryFunction<"log_ndtr">::operator()(const Array&, Where) const;
template <> constexpr BinaryBody binary_body<"betaln"> = rounded<log_of_beta>;
template SHARDARRAY_API Array BinaryFunction<"betaln">::operator()(const Array&, const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"factorial"> = rounded<factorial_of>;
template SHARDARRAY_API Array UnaryFunction<"factorial">::operator()(const Array&, Where) const;
template <> constexpr BinaryBody binary_body<"rel_entr"> = strong_array<rounded<relative_entropy>>;
template SHARDARRAY_API Array BinaryFunction<"rel_entr">::operator()(const Array&, const Array&, Where) const;
template <> constexpr BinaryBody binary_body<"kl_div"> = strong_array<rounded<divergence>>;
template SHARDARRAY_API Array BinaryFunction<"kl_div">::operator()(const Array&, const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"log1mexp"> = rounded<log_of_rest>;
template SHARDARRAY_API Array UnaryFunction<"log1mexp">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"ndtr"> = strong<rounded<normal_distribution>>;
template SHARDARRAY_API Array UnaryFunction<"ndtr">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"entr"> = rounded<entropy>;
template SHARDARRAY_API Array UnaryFunction<"entr">::operator()(const Array&, Where) const;
template <> constexpr UnaryBody unary_body<"logit"> = strong_array<rounded<log_odds>>;
template SHARDARRAY_API Array UnaryFunction<"logit">::operator()(const Array&, Where) const;
template <> constexpr BinaryBody binary_body<"xlogy"> = rounded<x_log_y>;
template SHARDARRAY_API Array BinaryFunction<"xlogy">::operator()(const Array&, const Array&, Where) const;
template <> constexpr BinaryBody binary_body<"xlog1py"> = rounded<x_log1p_y>;
template SHARDARRAY_API Array BinaryFunction<"xlog1py">::operator()(const Array&, const Array&, Where) const;

}  // namespace shardarray

// Elementary functions of floats.
#include <cmath>
#include <numbers>

#include "ops/rules.h"
#include "ops/table.h"

namespace shardarray {

using namespace rules;

static Array squared(const Array& x) { return prim::mul(x, x); }
// 1 - x^2 without cancellation near |x| = 1.
static Array one_minus_square(const Array& x) {
  const Array one = prim::like(x, 1);
  return prim::mul(prim::add(one, x), prim::sub(one, x));
}
static Arrays divided(const JvpArgs& v, const Array& by) { return {prim::div(v.tangents[0], by)}; }

static Arrays atan2_jvp(const JvpArgs& v) {
  const Array &y = v.in[0], &x = v.in[1], r2 = prim::add(squared(x), squared(y));
  Array t;
  if (v.tangents[0].has_value()) t = prim::mul(v.tangents[0], prim::div(x, r2));
  if (v.tangents[1].has_value()) t = add_or(t, prim::mul(v.tangents[1], prim::neg(prim::div(y, r2))));
  return {t};
}

constinit const Op op_exp{.name = "exp",
                          .form = Form::scalar,
                          .rule = pointwise_rule,
                          .jvp = [](const JvpArgs& v) { return scaled(v, v.out[0]); },
                          .scalar = emit_function<expand::exp>};
constinit const Op op_expm1{
    .name = "expm1",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .jvp = [](const JvpArgs& v) { return scaled(v, prim::add(v.out[0], prim::like(v.out[0], 1))); },
    .scalar = emit_function<expand::expm1>};
constinit const Op op_log{.name = "log",
                          .form = Form::scalar,
                          .rule = pointwise_rule,
                          .jvp = [](const JvpArgs& v) { return divided(v, v.in[0]); },
                          .scalar = emit_function<expand::log>};
constinit const Op op_log1p{
    .name = "log1p",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .jvp = [](const JvpArgs& v) { return divided(v, prim::add(v.in[0], prim::like(v.in[0], 1))); },
    .scalar = emit_function<expand::log1p>};
constinit const Op op_sqrt{
    .name = "sqrt",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .jvp = [](const JvpArgs& v) { return scaled(v, prim::div(prim::like(v.out[0], 0.5), v.out[0])); },
    .scalar = emit_unary<Code::sqrt>};
constinit const Op op_rsqrt{.name = "rsqrt",
                            .form = Form::scalar,
                            .rule = pointwise_rule,
                            .jvp =
                                [](const JvpArgs& v) {
                                  return scaled(
                                      v, prim::mul(prim::like(v.out[0], -0.5), prim::div(v.out[0], v.in[0])));
                                },
                            .scalar =
                                [](ScalarArgs& s) {
                                  const int one = s.b.constant(s.b.type(s.in[0]), 1);
                                  s.out[0] = s.b.binary(Code::div, one, s.b.unary(Code::sqrt, s.in[0]));
                                }};
constinit const Op op_sin{.name = "sin",
                          .form = Form::scalar,
                          .rule = pointwise_rule,
                          .jvp = [](const JvpArgs& v) { return scaled(v, prim::unary(op_cos, v.in[0])); },
                          .scalar = emit_function<expand::sin>};
constinit const Op op_cos{
    .name = "cos",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .jvp = [](const JvpArgs& v) { return scaled(v, prim::neg(prim::unary(op_sin, v.in[0]))); },
    .scalar = emit_function<expand::cos>};
constinit const Op op_tan{
    .name = "tan",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .jvp = [](const JvpArgs& v) { return scaled(v, prim::add(prim::like(v.out[0], 1), squared(v.out[0]))); },
    .scalar = emit_function<expand::tan>};
constinit const Op op_tanh{.name = "tanh",
                           .form = Form::scalar,
                           .rule = pointwise_rule,
                           .jvp = [](const JvpArgs& v) { return scaled(v, one_minus_square(v.out[0])); },
                           .scalar = emit_function<expand::tanh>};
constinit const Op op_sinh{.name = "sinh",
                           .form = Form::scalar,
                           .rule = pointwise_rule,
                           .jvp = [](const JvpArgs& v) { return scaled(v, prim::unary(op_cosh, v.in[0])); },
                           .scalar = emit_function<expand::sinh>};
constinit const Op op_cosh{.name = "cosh",
                           .form = Form::scalar,
                           .rule = pointwise_rule,
                           .jvp = [](const JvpArgs& v) { return scaled(v, prim::unary(op_sinh, v.in[0])); },
                           .scalar = emit_function<expand::cosh>};
constinit const Op op_asin{
    .name = "asin",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .jvp = [](const JvpArgs& v) { return scaled(v, prim::unary(op_rsqrt, one_minus_square(v.in[0]))); },
    .scalar = emit_function<expand::asin>};
constinit const Op op_acos{.name = "acos",
                           .form = Form::scalar,
                           .rule = pointwise_rule,
                           .jvp =
                               [](const JvpArgs& v) {
                                 return scaled(v,
                                               prim::neg(prim::unary(op_rsqrt, one_minus_square(v.in[0]))));
                               },
                           .scalar = emit_function<expand::acos>};
constinit const Op op_atan{
    .name = "atan",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .jvp = [](const JvpArgs& v) { return divided(v, prim::add(prim::like(v.in[0], 1), squared(v.in[0]))); },
    .scalar = emit_function<expand::atan>};
constinit const Op op_atan2{.name = "atan2",
                            .form = Form::scalar,
                            .rule = pointwise_rule,
                            .type = same_type,
                            .jvp = atan2_jvp,
                            .scalar = [](ScalarArgs& s) { s.out[0] = expand::atan2(s.b, s.in[0], s.in[1]); }};
// erf' = 2 / sqrt(pi) exp(-x^2)
static Array bell_of(const Array& x) {
  return prim::mul(prim::like(x, 2 * std::numbers::inv_sqrtpi), prim::exp(prim::neg(squared(x))));
}
constinit const Op op_erf{.name = "erf",
                          .form = Form::scalar,
                          .rule = pointwise_rule,
                          .jvp = [](const JvpArgs& v) { return scaled(v, bell_of(v.in[0])); },
                          .scalar = emit_function<expand::erf>};
constinit const Op op_erfc{.name = "erfc",
                           .form = Form::scalar,
                           .rule = pointwise_rule,
                           .jvp = [](const JvpArgs& v) { return scaled(v, prim::neg(bell_of(v.in[0]))); },
                           .scalar = emit_function<expand::erfc>};
constinit const Op op_erf_inv{
    .name = "erf_inv",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .jvp =
        [](const JvpArgs& v) {
          const Array bell = prim::exp(squared(v.out[0]));
          return scaled(v, prim::mul(prim::like(v.out[0], 0.5 / std::numbers::inv_sqrtpi), bell));
        },
    .scalar = emit_function<expand::erf_inv>};
constinit const Op op_logistic{
    .name = "logistic",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .jvp =
        [](const JvpArgs& v) {
          return scaled(v, prim::mul(v.out[0], prim::sub(prim::like(v.out[0], 1), v.out[0])));
        },
    .scalar = emit_function<expand::logistic>};

static constexpr const Op* math_table[] = {&op_exp,   &op_expm1, &op_log,  &op_log1p,   &op_sqrt,
                                           &op_rsqrt, &op_sin,   &op_cos,  &op_tan,     &op_tanh,
                                           &op_sinh,  &op_cosh,  &op_asin, &op_acos,    &op_atan,
                                           &op_atan2, &op_erf,   &op_erfc, &op_erf_inv, &op_logistic};
constinit const std::span<const Op* const> math_ops = math_table;

}  // namespace shardarray

// add, sub, mul, div, rem, min, max, pow, fma and the ops of one operand that are piecewise linear.
#include "ops/rules.h"
#include "ops/table.h"

namespace shardarray {

using namespace rules;

// An absent tangent or cotangent stays absent.
static Array times(const Array& t, const Array& x) { return t.has_value() ? prim::mul(t, x) : Array(); }
static Array minus(const Array& t) { return t.has_value() ? prim::neg(t) : Array(); }
static bool same(const Array& a, const Array& b) { return a.node() == b.node() && a.index() == b.index(); }

// JAX's derivative of min and max: ties share it equally.
static Array share_of(const Array& mine, const Array& out, const Array& other) {
  const Array tie = prim::select(prim::binary(op_eq, other, out), prim::like(out, 0.5), prim::like(out, 1));
  return prim::select(prim::binary(op_eq, mine, out), tie, prim::like(out, 0));
}
static Arrays extremum_jvp(const JvpArgs& v) {
  const auto& t = v.tangents;
  return {add_or(t[0].has_value() ? times(t[0], share_of(v.in[0], v.out[0], v.in[1])) : Array(),
                 t[1].has_value() ? times(t[1], share_of(v.in[1], v.out[0], v.in[0])) : Array())};
}

// Select 1, -1 or x itself (zeros and NaN).
static void emit_sign(ScalarArgs& s) {
  const DType t = s.b.type(s.in[0]);
  const int zero = s.b.constant(t, 0), positive = s.b.binary(Code::gt, s.in[0], zero);
  const int rest = is_unsigned_integer(t)
                       ? s.in[0]
                       : s.b.select(s.b.binary(Code::lt, s.in[0], zero), s.b.constant(t, -1), s.in[0]);
  s.out[0] = s.b.select(positive, s.b.constant(t, 1), rest);
}

// Integers: square and multiply over six bits of the exponent; more would overflow for any |x| > 1. 0 to a negative power is 0.
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

// d/dx = y x^(y-1), of x^0 = 1 also where x = 0; d/dy = log(x) x^y, with log(1) where x = 0.
static Arrays pow_jvp(const JvpArgs& v) {
  const Array &x = v.in[0], &y = v.in[1], one = prim::like(x, 1);
  Array t;
  if (v.tangents[0].has_value()) {
    const Array less = prim::select(prim::binary(op_eq, y, prim::like(y, 0)), one, prim::sub(y, one));
    t = prim::mul(v.tangents[0], prim::mul(y, prim::binary(op_pow, x, less)));
  }
  if (v.tangents[1].has_value()) {
    const Array base = prim::select(prim::binary(op_eq, x, prim::like(x, 0)), one, x);
    t = add_or(t, prim::mul(v.tangents[1], prim::mul(prim::unary(op_log, base), v.out[0])));
  }
  return {t};
}

constinit const Op op_add{
    .name = "add",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .type = same_type,
    .linearity = joint,
    .jvp = [](const JvpArgs& v) { return Arrays{add_or(v.tangents[0], v.tangents[1])}; },
    .transpose =
        [](const TransposeArgs& t) {
          return Arrays{t.cotangents[0], t.cotangents[0]};
        },
    .scalar = emit_binary<Code::add>};
constinit const Op op_sub{
    .name = "sub",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .type = same_type,
    .linearity = joint,
    .jvp =
        [](const JvpArgs& v) {
          const auto& t = v.tangents;
          return Arrays{t[0].has_value() && t[1].has_value() ? prim::sub(t[0], t[1])
                        : t[0].has_value()                   ? t[0]
                                                             : minus(t[1])};
        },
    .transpose =
        [](const TransposeArgs& t) {
          return Arrays{t.cotangents[0], t.linear[1] ? prim::neg(t.cotangents[0]) : Array()};
        },
    .scalar = emit_binary<Code::sub>};
constinit const Op op_mul{
    .name = "mul",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .type = same_type,
    .linearity =
        [](const Call& c, int operand) {
          int exponent = 0;
          const bool shrinks = is_power_of_two(c, 1 - operand, exponent) && exponent <= 0;
          return shrinks ? Linear::each : each_integer(c, operand);
        },
    .jvp =
        [](const JvpArgs& v) {
          if (same(v.in[0], v.in[1])) return scaled(v, prim::add(v.in[0], v.in[0]));
          return Arrays{add_or(times(v.tangents[0], v.in[1]), times(v.tangents[1], v.in[0]))};
        },
    .transpose =
        [](const TransposeArgs& t) {
          return Arrays{t.linear[0] ? prim::mul(t.cotangents[0], t.in[1]) : Array(),
                        t.linear[1] ? prim::mul(t.cotangents[0], t.in[0]) : Array()};
        },
    .scalar = emit_binary<Code::mul>};
constinit const Op op_div{
    .name = "div",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .type = same_type,
    .linearity =
        [](const Call& c, int operand) {
          int exponent = 0;
          const bool shrinks = operand == 0 && is_power_of_two(c, 1, exponent) && exponent >= 0;
          return shrinks ? Linear::each : Linear::no;
        },
    .jvp =
        [](const JvpArgs& v) {
          const auto& t = v.tangents;
          return Arrays{
              add_or(t[0].has_value() ? prim::div(t[0], v.in[1]) : Array(),
                     t[1].has_value() ? prim::neg(prim::div(prim::mul(t[1], v.out[0]), v.in[1])) : Array())};
        },
    .transpose =
        [](const TransposeArgs& t) {
          return Arrays{prim::div(t.cotangents[0], t.in[1]), Array()};
        },
    .scalar = emit_binary<Code::div>};
constinit const Op op_rem{
    .name = "rem",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .type = same_type,
    .jvp =
        [](const JvpArgs& v) {
          return Arrays{add_or(
              v.tangents[0],
              v.tangents[1].has_value()
                  ? prim::neg(prim::mul(v.tangents[1], prim::unary(op_trunc, prim::div(v.in[0], v.in[1]))))
                  : Array())};
        },
    .scalar = emit_binary<Code::rem>};
constinit const Op op_min{.name = "min",
                          .form = Form::scalar,
                          .rule = pointwise_rule,
                          .type = same_type,
                          .jvp = extremum_jvp,
                          .scalar = emit_binary<Code::min>};
constinit const Op op_max{.name = "max",
                          .form = Form::scalar,
                          .rule = pointwise_rule,
                          .type = same_type,
                          .jvp = extremum_jvp,
                          .scalar = emit_binary<Code::max>};
constinit const Op op_pow{.name = "pow",
                          .form = Form::scalar,
                          .rule = pointwise_rule,
                          .type = same_type,
                          .jvp = pow_jvp,
                          .scalar = emit_pow};
constinit const Op op_fma{
    .name = "fma",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .type = same_type,
    .jvp =
        [](const JvpArgs& v) {
          return Arrays{
              add_or(add_or(times(v.tangents[0], v.in[1]), times(v.tangents[1], v.in[0])), v.tangents[2])};
        },
    .scalar = [](ScalarArgs& s) { s.out[0] = s.b.fma(s.in[0], s.in[1], s.in[2]); }};
constinit const Op op_neg{
    .name = "neg",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .linearity = joint,
    .transpose = [](const TransposeArgs& t) { return Arrays{prim::neg(t.cotangents[0])}; },
    .scalar = emit_unary<Code::neg>};
// As JAX: 1 at zero.
constinit const Op op_abs{
    .name = "abs",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .jvp =
        [](const JvpArgs& v) {
          const Array &x = v.in[0], &t = v.tangents[0];
          return Arrays{prim::select(prim::binary(op_ge, x, prim::like(x, 0)), t, prim::neg(t))};
        },
    .scalar = emit_unary<Code::abs>};
constinit const Op op_sign{
    .name = "sign", .form = Form::scalar, .rule = pointwise_rule, .jvp = no_tangent, .scalar = emit_sign};
constinit const Op op_floor{.name = "floor",
                            .form = Form::scalar,
                            .rule = pointwise_rule,
                            .jvp = no_tangent,
                            .scalar = emit_unary<Code::floor>};
constinit const Op op_ceil{.name = "ceil",
                           .form = Form::scalar,
                           .rule = pointwise_rule,
                           .jvp = no_tangent,
                           .scalar = emit_unary<Code::ceil>};
constinit const Op op_round{.name = "round",
                            .form = Form::scalar,
                            .rule = pointwise_rule,
                            .jvp = no_tangent,
                            .scalar = emit_unary<Code::round>};
constinit const Op op_trunc{.name = "trunc",
                            .form = Form::scalar,
                            .rule = pointwise_rule,
                            .jvp = no_tangent,
                            .scalar = emit_unary<Code::trunc>};

// Not max(x, 0): that would share the gradient at 0.
constinit const Op op_relu{
    .name = "relu",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .jvp =
        [](const JvpArgs& v) {
          const Array zero = prim::like(v.in[0], 0);
          return Arrays{prim::select(prim::binary(op_gt, v.in[0], zero), v.tangents[0],
                                     zeros_of(type_of(v.tangents[0])))};
        },
    .scalar =
        [](ScalarArgs& s) { s.out[0] = s.b.binary(Code::max, s.in[0], s.b.constant(s.b.type(s.in[0]), 0)); }};

static constexpr const Op* arithmetic_table[] = {&op_add,   &op_sub,  &op_mul,   &op_div,   &op_rem, &op_min,
                                                 &op_max,   &op_pow,  &op_fma,   &op_neg,   &op_abs, &op_sign,
                                                 &op_floor, &op_ceil, &op_round, &op_trunc, &op_relu};
constinit const std::span<const Op* const> arithmetic_ops = arithmetic_table;

}  // namespace shardarray

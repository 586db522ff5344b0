// Derivatives of complex functions as functions of z: finite wherever the derivative is, however the values are computed, and themselves
// differentiable.
#include <numbers>

#include "ops/complex.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

namespace complex_ops {

namespace {

Complex number(const Complex& like, double v) {
  return {primitive::like(like.re, v), primitive::like(like.re, 0)};
}
Complex over(const Complex& z) { return number(z, 1) / z; }
Complex one_less(const Complex& z) { return {primitive::sub(z.re, primitive::like(z.re, 1)), z.im}; }
Complex one_plus(const Complex& z) { return {primitive::add(z.re, primitive::like(z.re, 1)), z.im}; }
/// Divides one after the other: the product of the factors may be NaN where its parts are infinite.
Complex over_both(const Complex& a, const Complex& b) { return over(a) / b; }

Complex slope_of(Known f, const Complex& z) {
  switch (f) {
    case Known::exp:
    case Known::expm1: return exp(z);
    case Known::exp2: return times(exp2(z), std::numbers::ln2);
    case Known::square: return times(z, 2);
    case Known::log: return over(z);
    case Known::log1p: return over(one_plus(z));
    case Known::sqrt: return times(rsqrt(z), 0.5);
    case Known::rsqrt: return times(rsqrt(z) / z, -0.5);
    case Known::sin: return cos(z);
    case Known::cos: return -sin(z);
    case Known::tanh: return sech_squared(z);
    case Known::sech_squared: return times(tanh(z) * sech_squared(z), -2);
    case Known::asin: return over_both(sqrt(one_plus(-z)), sqrt(one_plus(z)));
    case Known::acos: return -slope_of(Known::asin, z);
    case Known::acosh: return over_both(sqrt(-one_plus(-z)), sqrt(one_plus(z)));
    case Known::atanh: return over_both(one_plus(-z), one_plus(z));
    case Known::logistic: return logistic_slope(z);
    case Known::logistic_slope: return logistic_slope(z) * (logistic(-z) - logistic(z));
    case Known::pow:
    case Known::atan2: break;  // binary
  }
  return z;
}
Complex one_where(const Array& condition, const Complex& z) { return chosen(condition, number(z, 1), z); }
Array is_zero(const Complex& z) {
  const auto zero = [](const Array& x) { return primitive::binary(op_eq, x, primitive::like(x, 0)); };
  return primitive::binary(op_and, zero(z.re), zero(z.im));
}
/// With respect to operand k.
Complex slope_of(Known f, const Complex& a, const Complex& b, std::size_t k) {
  if (f == Known::pow)  // log(1) at 0, as for real bases; for exponent 0 the derivative is 0
    return k == 0 ? b * pow(one_where(is_zero(b), a), one_less(b))
                  : log(one_where(is_zero(a), a)) * pow(a, b);
  // x / (x^2 + y^2) and -y / (x^2 + y^2) with y = a, by the factors x + iy and x - iy
  const Complex turned(primitive::neg(a.im), a.re);
  return (k == 0 ? b : -a) / (b + turned) / (b - turned);
}

Array times(const Array& t, const Array& x) { return t.has_value() ? primitive::mul(t, x) : Array(); }

// The requested part of (p + iq) (dx + i dy), for one or two operands.
Arrays known_jvp(const JvpArgs& v) {
  const Attrs& attrs = v.node.attrs();
  const auto f = static_cast<Known>(attrs.lo[0]);
  const bool is_imag = attrs.lo[1] != 0;
  Array t;
  for (std::size_t k = 1; k < v.in.size(); k += 2) {
    const Array &dx = v.tangents[k], &dy = v.tangents[k + 1];
    if (!dx.has_value() && !dy.has_value()) continue;
    const Complex s = v.in.size() == 3 ? slope_of(f, {v.in[1], v.in[2]})
                                       : slope_of(f, {v.in[1], v.in[2]}, {v.in[3], v.in[4]}, k / 2);
    t = add_or(t, is_imag ? add_or(times(dx, s.im), times(dy, s.re))
                          : add_or(times(dx, s.re), times(dy, primitive::neg(s.im))));
  }
  return {t};
}

}  // namespace
}  // namespace complex_ops

// (a part of f(z), x, y), or with the parts of two operands: returns the first, with the derivative of f at z = x + iy; attrs.lo = {f,
// part}. Compiles to an alias.
SHARDARRAY_OP op_known_slope = elementwise({.name = "known_slope",
                                            .type = same_type,
                                            .jvp = complex_ops::known_jvp,
                                            .scalar = [](ScalarArgs& s) { s.out[0] = s.in[0]; },
                                            .trait = Trait::alias});

namespace complex_ops {

static Array fixed(const Array& x) { return primitive::unary(op_stop_gradient, x); }
static Complex fixed(const Complex& z) { return {fixed(z.re), fixed(z.im)}; }
static Complex with_slope(Known f, const Complex& value, std::span<const Array> operands) {
  const auto part = [&](const Array& x, std::int64_t k) {
    Attrs a;
    a.lo = {static_cast<std::int64_t>(f), k};
    Arrays in = {x};
    in.insert(in.end(), operands.begin(), operands.end());
    return record(op_known_slope, in, std::move(a));
  };
  return {part(value.re, 0), part(value.im, 1)};
}
Complex with_slope(Known f, const Complex& z, Complex (*value)(const Complex&)) {
  return with_slope(f, value(fixed(z)), Arrays{z.re, z.im});
}
Complex with_slope(Known f, const Complex& a, const Complex& b,
                   Complex (*value)(const Complex&, const Complex&)) {
  return with_slope(f, value(fixed(a), fixed(b)), Arrays{a.re, a.im, b.re, b.im});
}

}  // namespace complex_ops
}  // namespace shardarray

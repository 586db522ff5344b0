// Elementary functions of complex numbers, by real ones of their parts.
// Sources: Kahan, "Branch cuts for complex elementary functions" (1987); DLMF 4.21, 4.35.
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/complex.h"

namespace shardarray::complex_ops {

namespace {

Array one(const Array& x) { return primitive::like(x, 1); }
Array scaled(const Array& x, double by) { return primitive::mul(x, primitive::like(x, by)); }
Array squared(const Array& x) { return primitive::mul(x, x); }
Array of(const Op& op, const Array& x) { return primitive::unary(op, x); }
Array angle(const Array& y, const Array& x) { return primitive::binary(op_atan2, y, x); }
Array is_zero(const Array& x) { return primitive::binary(op_eq, x, primitive::like(x, 0)); }
// -0 is negative, too.
Array is_negative(const Array& x) {
  const DType bits = x.dtype() == DType::float64 ? DType::int64 : DType::int32;
  const Array word = primitive::bitcast(of(op_stop_gradient, x), bits);
  return primitive::binary(op_lt, word, primitive::like(word, 0));
}
Array signed_as(const Array& size, const Array& x) {
  return primitive::select(is_negative(x), primitive::neg(size), size);
}
// The sign of a zero says on which side of a cut z lies.
Complex plus_one(const Complex& z) { return {primitive::add(z.re, one(z.re)), z.im}; }
Complex one_minus(const Complex& z) { return {primitive::sub(one(z.re), z.re), primitive::neg(z.im)}; }
Complex times_i(const Complex& z) { return {primitive::neg(z.im), z.re}; }
Complex times_minus_i(const Complex& z) { return {z.im, primitive::neg(z.re)}; }

Array is_infinite(const Array& x) {
  return primitive::binary(op_eq, of(op_abs, x), primitive::like(x, std::numeric_limits<double>::infinity()));
}

/// A quarter of what has a part so large that its size would be infinite; else itself.
class Tamed {
 public:
  explicit Tamed(const Complex& of)
      : is_large_(exceeds(of)),
        z({primitive::mul(of.re, where_large(of.re, 0.25, 1)),
           primitive::mul(of.im, where_large(of.re, 0.25, 1))}) {}
  Array where_large(const Array& like, double value, double otherwise) const {
    return primitive::select(is_large_, primitive::like(like, value), primitive::like(like, otherwise));
  }

 private:
  static Array exceeds(const Complex& z) {
    const Array most = primitive::like(z.re, z.re.dtype() == DType::float64 ? 0x1p1022 : 0x1p126);
    return primitive::binary(op_or, primitive::binary(op_gt, of(op_abs, z.re), most),
                             primitive::binary(op_gt, of(op_abs, z.im), most));
  }
  Array is_large_;

 public:
  const Complex z;
};

}  // namespace

// An infinite e^x on the real line stays there. Where e^x is too large, e^x cos y need not be: e^16 comes last.
Complex exp(const Complex& z) {
  const Array most = primitive::like(z.re, z.re.dtype() == DType::float64 ? 700 : 80);
  const Array large = primitive::binary(op_gt, z.re, most);
  const auto where_large = [&](double value, double otherwise) {
    return primitive::select(large, primitive::like(z.re, value), primitive::like(z.re, otherwise));
  };
  const Array size = primitive::exp(primitive::sub(z.re, where_large(16, 0))),
              last = where_large(std::exp(16.0), 1);
  const Array im = primitive::mul(primitive::mul(size, of(op_sin, z.im)), last);
  const Array stays =
      primitive::binary(op_and, is_zero(z.im), of(op_not, of(op_is_finite, primitive::mul(size, last))));
  return {primitive::mul(primitive::mul(size, of(op_cos, z.im)), last), primitive::select(stays, z.im, im)};
}
// cos y - 1 = -2 sin(y / 2)^2.
Complex expm1(const Complex& z) {
  const Array grown = of(op_expm1, z.re), half = of(op_sin, scaled(z.im, 0.5));
  const Array size = primitive::add(grown, one(grown));
  return {primitive::sub(primitive::mul(grown, of(op_cos, z.im)), scaled(squared(half), 2)),
          primitive::mul(size, of(op_sin, z.im))};
}
Complex exp2(const Complex& z) { return exp(times(z, std::numbers::ln2)); }
Complex log(const Complex& z) {
  const Tamed small(z);
  const Array size = of(op_log, abs(small.z));
  return {primitive::add(size, small.where_large(size, 2 * std::numbers::ln2, 0)), angle(z.im, z.re)};
}
// Near 0 from |1 + z|^2 - 1 = x (2 + x) + y^2.
Complex log1p(const Complex& z) {
  const Array x = primitive::add(z.re, one(z.re)), size = abs(z);
  const Array near = primitive::binary(op_lt, size, primitive::like(size, 0.5)),
              zero = primitive::like(size, 0);
  const Array excess =
      primitive::add(primitive::mul(z.re, primitive::add(z.re, primitive::like(z.re, 2))), squared(z.im));
  const Array close = scaled(of(op_log1p, primitive::select(near, excess, zero)), 0.5);
  return {primitive::select(near, close, of(op_log, abs({x, z.im}))), angle(z.im, x)};
}
Complex log2(const Complex& z) { return times(log(z), std::numbers::log2e); }
Complex log10(const Complex& z) { return times(log(z), std::numbers::log10e); }

// t = sqrt((|x| + |z|) / 2) is the larger part; y / (2 t) the other one. Both are infinite where y is.
Complex sqrt(const Complex& large_z) {
  const Tamed small(large_z);
  const Complex& z = small.z;
  const Array sum = primitive::add(scaled(of(op_abs, z.re), 0.5), scaled(abs(z), 0.5));
  const Array infinite = is_infinite(z.im);
  const Array larger = primitive::select(infinite, of(op_abs, z.im), of(op_sqrt, sum)),
              origin = is_zero(larger);
  const Array quotient = primitive::div(scaled(z.im, 0.5), primitive::select(origin, one(larger), larger));
  const Array other = primitive::select(infinite, z.im, quotient);
  const Array right = primitive::binary(op_ge, z.re, primitive::like(z.re, 0)),
              back = small.where_large(larger, 2, 1);
  const Complex root =
      chosen(right, {larger, other},
             {primitive::select(is_negative(z.im), primitive::neg(other), other), signed_as(larger, z.im)});
  return {primitive::mul(root.re, back), primitive::mul(root.im, back)};
}
Complex rsqrt(const Complex& z) { return Complex(one(z.re), primitive::like(z.im, 0)) / sqrt(z); }

Complex sin(const Complex& z) {
  return {primitive::mul(of(op_sin, z.re), of(op_cosh, z.im)),
          primitive::mul(of(op_cos, z.re), of(op_sinh, z.im))};
}
Complex cos(const Complex& z) {
  return {primitive::mul(of(op_cos, z.re), of(op_cosh, z.im)),
          primitive::neg(primitive::mul(of(op_sin, z.re), of(op_sinh, z.im)))};
}
Complex sinh(const Complex& z) { return times_minus_i(sin(times_i(z))); }
Complex cosh(const Complex& z) { return cos(times_i(z)); }
// (tanh x + i tan y) / (1 + i tanh x tan y), the denominator made real; 1 - tanh^2 as 1 / cosh^2 has no cancellation.
Complex tanh(const Complex& z) {
  const Array slope = of(op_tan, z.im), level = of(op_tanh, z.re);
  const Array steep = primitive::add(one(slope), squared(slope));
  const Array by = primitive::add(one(slope), squared(primitive::mul(level, slope)));
  const Array fall = squared(primitive::div(one(level), of(op_cosh, z.re)));
  return {primitive::div(primitive::mul(level, steep), by), primitive::div(primitive::mul(slope, fall), by)};
}
Complex tan(const Complex& z) { return times_minus_i(tanh(times_i(z))); }

// ---------------------------------------------------------------- inverse functions
Complex asin(const Complex& z) {
  const Complex below = sqrt(one_minus(z)), above = sqrt(plus_one(z));
  const Array rise = primitive::sub(primitive::mul(below.re, above.im), primitive::mul(below.im, above.re));
  return {angle(z.re, (below * above).re), of(op_asinh, rise)};
}
Complex acos(const Complex& z) {
  const Complex below = sqrt(one_minus(z)), above = sqrt(plus_one(z));
  const Array fall = primitive::sub(primitive::mul(above.re, below.im), primitive::mul(above.im, below.re));
  return {scaled(angle(below.re, above.re), 2), of(op_asinh, fall)};
}
Complex asinh(const Complex& z) { return times_minus_i(asin(times_i(z))); }
Complex acosh(const Complex& z) {
  const Complex below = sqrt(-one_minus(z)), above = sqrt(plus_one(z));
  const Array size = primitive::add(primitive::mul(below.re, above.re), primitive::mul(below.im, above.im));
  return {of(op_asinh, size), scaled(angle(below.im, above.re), 2)};
}
// log(|1 + z|^2 / |1 - z|^2) / 4, and half the angle between both.
Complex atanh(const Complex& z) {
  const Array left = primitive::sub(one(z.re), z.re), right = primitive::add(one(z.re), z.re);
  const Array distance = primitive::add(squared(left), squared(z.im));
  const Array size = scaled(of(op_log1p, primitive::div(scaled(z.re, 4), distance)), 0.25);
  return {size,
          scaled(angle(scaled(z.im, 2), primitive::sub(primitive::mul(left, right), squared(z.im))), 0.5)};
}
Complex atan(const Complex& z) { return times_minus_i(atanh(times_i(z))); }

Complex logistic(const Complex& z) {
  return Complex(one(z.re), primitive::like(z.re, 0)) / plus_one(exp(-z));
}
Complex atan2(const Complex& y, const Complex& x) {
  return times_minus_i(log((x + times_i(y)) / sqrt(x * x + y * y)));
}
// 0 to the power 0 is 1, to any other one 0. Of other bases the power 0 has the slopes of its neighbours.
Complex pow(const Complex& base, const Complex& exponent) {
  const Array zero = primitive::like(base.re, 0);
  const Array origin = primitive::binary(op_and, is_zero(base.re), is_zero(base.im)),
              none = primitive::binary(op_and, is_zero(exponent.re), is_zero(exponent.im));
  const Complex some(primitive::select(origin, one(base.re), base.re), base.im);
  const Complex power = chosen(origin, {zero, zero}, exp(exponent * log(some)));
  const Complex value = chosen(none, {one(zero), zero}, power);
  return {primitive::with_slope_of(value.re, power.re), primitive::with_slope_of(value.im, power.im)};
}

}  // namespace shardarray::complex_ops

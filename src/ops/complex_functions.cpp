// Elementary complex functions in terms of real ones of the parts. Derivatives are in complex_slopes.cpp; these values need not be
// differentiable.
// Sources: Kahan, "Branch cuts for complex elementary functions" (1987); DLMF 4.21, 4.35.
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/complex.h"

namespace shardarray::complex_ops {

namespace {

bool is_double(const Array& x) { return x.dtype() == DType::float64; }
Array one(const Array& x) { return primitive::like(x, 1); }
Array scaled(const Array& x, double by) { return primitive::mul(x, primitive::like(x, by)); }
Array squared(const Array& x) { return primitive::mul(x, x); }
Array of(const Op& op, const Array& x) { return primitive::unary(op, x); }
Array angle(const Array& y, const Array& x) { return primitive::binary(op_atan2, y, x); }
Array either(const Array& a, const Array& b) { return primitive::binary(op_or, a, b); }
Array size_of(const Complex& z) { return primitive::binary(op_hypot, z.re, z.im); }
Array is_zero(const Array& x) { return primitive::binary(op_eq, x, primitive::like(x, 0)); }
Array is_above(const Array& x, double limit) {
  return primitive::binary(op_gt, x, primitive::like(x, limit));
}
// Includes -0.
Array word_of(const Array& x) {
  return primitive::bitcast(x, x.dtype() == DType::float64 ? DType::int64 : DType::int32);
}
Array is_negative(const Array& x) {
  const Array word = word_of(x);
  return primitive::binary(op_lt, word, primitive::like(word, 0));
}
/// A non-negative magnitude with the sign of x.
Array signed_as(const Array& size, const Array& x) {
  const Array word = word_of(x),
              highest = primitive::like_whole(word, is_double(x) ? std::numeric_limits<std::int64_t>::min()
                                                                 : std::numeric_limits<std::int32_t>::min());
  return primitive::bitcast(primitive::binary(op_or, word_of(size), primitive::binary(op_and, word, highest)),
                            x.dtype());
}
// The sign of a zero determines the side of a branch cut.
Complex plus_one(const Complex& z) { return {primitive::add(z.re, one(z.re)), z.im}; }
Complex one_minus(const Complex& z) { return {primitive::sub(one(z.re), z.re), primitive::neg(z.im)}; }
Complex times_i(const Complex& z) { return {primitive::neg(z.im), z.re}; }
Complex times_minus_i(const Complex& z) { return {z.im, primitive::neg(z.re)}; }

constexpr double infinity = std::numeric_limits<double>::infinity();
Array is_infinite(const Array& x) {
  return primitive::binary(op_eq, of(op_abs, x), primitive::like(x, infinity));
}

/// z, or a quarter of it if a part is so large that |z| would overflow.
class Tamed {
 public:
  explicit Tamed(const Complex& of)
      : is_large_(exceeds(of)),
        z({primitive::mul(of.re, where_large(of.re, 0.25, 1)),
           primitive::mul(of.im, where_large(of.re, 0.25, 1))}) {}
  Array or_large(const Array& x, const Array& large) const { return primitive::select(is_large_, large, x); }
  Array where_large(const Array& like, double value, double otherwise) const {
    return primitive::select(is_large_, primitive::like(like, value), primitive::like(like, otherwise));
  }

 private:
  static Array exceeds(const Complex& z) {
    const double most = is_double(z.re) ? 0x1p1022 : 0x1p126;
    return either(is_above(of(op_abs, z.re), most), is_above(of(op_abs, z.im), most));
  }
  Array is_large_;

 public:
  const Complex z;
};

// Avoids overflow of an exponential before it is multiplied by a sine or cosine: the excess is in `last`, the final factor.
struct Shifted {
  Array x, last;
  /// Shifts where `of` exceeds a limit. For functions that also contain e^-x the shift leaves at least 20, where that is negligible.
  Shifted(const Array& of, const Array& is_large, double shift, double factor)
      : x(primitive::sub(of,
                         primitive::select(is_large, primitive::like(of, shift), primitive::like(of, 0)))),
        last(primitive::select(is_large, primitive::like(of, factor), one(of))) {}
};
Shifted shifted(const Array& x, bool leaves_rest) {
  const double limit = is_double(x) ? 700 : 80, rest = leaves_rest ? (is_double(x) ? 60 : 20) : 0;
  return {x, is_above(x, limit), limit - rest, std::exp(limit - rest)};
}

// size (cos y + i sin y) last; y = 0 gives a zero imaginary part even if size is infinite.
Complex turned(const Array& size, const Array& y, const Array& last) {
  const Array im = primitive::mul(primitive::mul(size, of(op_sin, y)), last);
  const Array stays =
      primitive::binary(op_and, is_zero(y), of(op_not, of(op_is_finite, primitive::mul(size, last))));
  return {primitive::mul(primitive::mul(size, of(op_cos, y)), last), primitive::select(stays, y, im)};
}

Complex exp_value(const Complex& z) {
  const Shifted s = shifted(z.re, false);
  return turned(primitive::exp(s.x), z.im, s.last);
}
Complex exp2_value(const Complex& z) {
  const double limit = is_double(z.re) ? 1000 : 100;
  const Shifted s(z.re, is_above(z.re, limit), limit, std::exp2(limit));
  return turned(of(op_exp2, s.x), scaled(z.im, std::numbers::ln2), s.last);
}
// cos y - 1 = -2 sin(y / 2)^2.
Complex expm1_value(const Complex& z) {
  const Shifted s = shifted(z.re, true);
  const Array grown = of(op_expm1, s.x), half = of(op_sin, scaled(z.im, 0.5));
  const Array re = primitive::mul(primitive::mul(grown, of(op_cos, z.im)), s.last);
  return {primitive::sub(re, scaled(squared(half), 2)),
          turned(primitive::add(grown, one(grown)), z.im, s.last).im};
}
// Near 1 the rounding error of the magnitude dominates: |z|^2 - size^2.
Complex log_value(const Complex& z) {
  const Tamed small(z);
  const auto& [x, y] = small.z;
  const Array size = size_of(small.z);
  const Array lost =
      primitive::add(primitive::mul(primitive::sub(x, size), primitive::add(x, size)), squared(y));
  const Array far = is_above(of(op_abs, primitive::sub(size, one(size))), 0.25);
  const Array rest =
      primitive::select(far, small.where_large(size, 2 * std::numbers::ln2, 0), scaled(lost, 0.5));
  return {primitive::add(of(op_log, size), rest), angle(z.im, z.re)};
}
// Near 0 via |1 + z|^2 - 1 = x (2 + x) + y^2.
Complex log1p_value(const Complex& z) {
  const Tamed small(plus_one(z));
  const Array far = either(is_above(of(op_abs, z.re), 0.5), is_above(of(op_abs, z.im), 0.5));
  const Array excess =
      primitive::add(primitive::mul(z.re, primitive::add(z.re, primitive::like(z.re, 2))), squared(z.im));
  const Array close = scaled(of(op_log1p, excess), 0.5), size = of(op_log, size_of(small.z));
  const Array distant = primitive::add(size, small.where_large(size, 2 * std::numbers::ln2, 0));
  return {primitive::select(far, distant, close), angle(z.im, primitive::add(z.re, one(z.re)))};
}

// t = sqrt((|x| + |z|) / 2) is the larger part; y / (2 t) the other one. For finite parts and magnitudes.
Complex root(const Complex& z) {
  const Array sum = primitive::add(scaled(of(op_abs, z.re), 0.5), scaled(size_of(z), 0.5));
  const Array larger = of(op_sqrt, sum), origin = is_zero(larger);
  const Array other = primitive::div(scaled(z.im, 0.5), primitive::select(origin, one(larger), larger));
  const Array right = primitive::binary(op_ge, z.re, primitive::like(z.re, 0)), below = is_negative(z.im);
  return chosen(right, {larger, other},
                {primitive::select(below, primitive::neg(other), other),
                 primitive::select(below, primitive::neg(larger), larger)});
}
// An infinite y makes both parts infinite.
Complex sqrt_value(const Complex& z) {
  const Tamed small(z);
  const Complex r = root(small.z);
  const Array back = small.where_large(r.re, 2, 1), endless = is_infinite(z.im);
  return {primitive::select(endless, of(op_abs, z.im), primitive::mul(r.re, back)),
          primitive::select(endless, z.im, primitive::mul(r.im, back))};
}

// sin x cosh y + i cos x sinh y, and cos x cosh y - i sin x sinh y; sin x = 0 stays 0 next to infinities. With m = e^|y| - 1 and r = 1 -
// e^-|y|: sinh |y| = (m + r) / 2, cosh y = 1 + (m - r) / 2.
struct Waves {
  Array sin, cos, sinh, cosh;
  explicit Waves(const Complex& z) : Waves(z, shifted(of(op_abs, z.im), true)) {}
  Array of_sin(const Array& grown) const {
    return primitive::select(is_zero(sin), sin, primitive::mul(sin, grown));
  }

 private:
  Waves(const Complex& z, const Shifted& s) : Waves(z, s.last, of(op_expm1, s.x)) {}
  Waves(const Complex& z, const Array& last, const Array& m)
      : Waves(z, last, m,  // m is clamped because inf / inf is NaN; r = 1 for large m
              primitive::div(primitive::binary(op_min, m, primitive::like(m, 0x1p60)),
                             primitive::add(m, one(m)))) {}
  Waves(const Complex& z, const Array& last, const Array& m, const Array& r)
      : sin(primitive::mul(of(op_sin, z.re), last)),
        cos(primitive::mul(of(op_cos, z.re), last)),
        sinh(signed_as(scaled(primitive::add(m, r), 0.5), z.im)),
        cosh(primitive::add(scaled(primitive::sub(m, r), 0.5), one(m))) {}
};
Complex sin_value(const Complex& z) {
  const Waves w(z);
  return {w.of_sin(w.cosh), primitive::mul(w.cos, w.sinh)};
}
Complex cos_value(const Complex& z) {
  const Waves w(z);
  return {primitive::mul(w.cos, w.cosh), primitive::neg(w.of_sin(w.sinh))};
}
// (tanh x + i tan y) / (1 + i tanh x tan y) with a real denominator; 1 - tanh^2 as 1 / cosh^2 avoids cancellation. Where that underflows,
// the result does not depend on the angle.
Complex tanh_value(const Complex& z) {
  const Array slope = of(op_tan, z.im), level = of(op_tanh, z.re);
  const Array steep = primitive::add(one(slope), squared(slope));
  const Array by = primitive::add(one(slope), squared(primitive::mul(level, slope)));
  const Array fall = squared(primitive::div(one(level), of(op_cosh, z.re))), far = is_zero(fall);
  const Complex near(primitive::div(primitive::mul(level, steep), by),
                     primitive::div(primitive::mul(slope, fall), by));
  return chosen(far, {level, signed_as(fall, slope)}, near);
}
// 1 / cosh^2 = steep fall / (1 + i tanh x tan y)^2.
Complex sech_squared_value(const Complex& z) {
  const Array slope = of(op_tan, z.im), across = primitive::mul(of(op_tanh, z.re), slope);
  const Array steep = primitive::add(one(slope), squared(slope));
  const Array by = primitive::add(one(slope), squared(across));
  const Array fall = squared(primitive::div(one(slope), of(op_cosh, z.re)));
  const Array share = primitive::div(primitive::mul(primitive::div(steep, by), fall), by);
  return chosen(is_zero(fall), {fall, fall},
                {primitive::mul(share, primitive::sub(one(across), squared(across))),
                 scaled(primitive::mul(share, across), -2)});
}

// ---------------------------------------------------------------- inverse functions
/// Common subexpressions: sqrt(1 - z), for acosh sqrt(z - 1), and sqrt(1 + z). For large z the 1 is negligible, and the angle is that of z
/// or iz.
class Roots {
 public:
  Roots(const Complex& given, bool is_turned)
      : z(given),
        small(z),
        below(root(is_turned ? -one_minus(small.z) : one_minus(small.z))),
        above(root(plus_one(small.z))) {}
  /// asinh(x), with the sign of `side`.
  Array grown(const Array& x, const Array& side) const {
    const Array endless = either(is_infinite(z.re), is_infinite(z.im)), zero = primitive::like(x, 0);
    const Array more = primitive::select(endless, primitive::like(x, infinity),
                                         small.where_large(x, 2 * std::numbers::ln2, 0));
    return primitive::add(of(op_asinh, primitive::select(endless, zero, x)), signed_as(more, side));
  }
  /// by * angle(y, x); for large z the angle of the other two.
  Array angle_of(const Array& y, const Array& x, double by, const Array& large_y,
                 const Array& large_x) const {
    const Array a = angle(small.or_large(y, large_y), small.or_large(x, large_x));
    return by == 1 ? a : primitive::mul(a, small.where_large(x, 1, by));
  }

 private:
  const Complex z;
  const Tamed small;

 public:
  const Complex below, above;
};
Complex asin_value(const Complex& z) {
  const Roots r(z, false);
  const Array rise =
      primitive::sub(primitive::mul(r.below.re, r.above.im), primitive::mul(r.below.im, r.above.re));
  return {r.angle_of(z.re, (r.below * r.above).re, 1, z.re, of(op_abs, z.im)), r.grown(rise, z.im)};
}
Complex acos_value(const Complex& z) {
  const Roots r(z, false);
  const Array fall =
      primitive::sub(primitive::mul(r.above.re, r.below.im), primitive::mul(r.above.im, r.below.re));
  return {r.angle_of(r.below.re, r.above.re, 2, of(op_abs, z.im), z.re), r.grown(fall, primitive::neg(z.im))};
}
Complex acosh_value(const Complex& z) {
  const Roots r(z, true);
  const Array size =
      primitive::add(primitive::mul(r.below.re, r.above.re), primitive::mul(r.below.im, r.above.im));
  return {r.grown(size, one(size)), r.angle_of(r.below.im, r.above.re, 2, z.im, z.re)};
}
// log(|1 + z|^2 / |1 - z|^2) / 4 of |x|, with the sign of x, and half the difference of the angles. Parts are clamped below infinity to
// avoid inf / inf.
Complex atanh_value(const Complex& z) {
  const double most = is_double(z.re) ? 0x1p1020 : 0x1p124;
  const auto at_most = [&](const Array& x) { return primitive::binary(op_min, x, primitive::like(x, most)); };
  const Array x = of(op_abs, z.re), y = primitive::binary(op_max, at_most(z.im), primitive::like(x, -most));
  const Array left = primitive::sub(one(x), x), right = primitive::add(one(x), x), high = squared(z.im);
  const Array ratio = primitive::div(scaled(at_most(x), 4), primitive::add(squared(left), high));
  return {signed_as(scaled(of(op_log1p, ratio), 0.25), z.re),
          scaled(angle(scaled(y, 2), primitive::sub(primitive::mul(left, right), high)), 0.5)};
}

// With w = exp(-|x| +- iy), |w| <= 1: 1 / (1 + w) on the right, w / (1 + w) on the left; the derivative is w / (1 + w)^2.
struct Logistic {
  Array right;
  Complex power, share;
  explicit Logistic(const Complex& z)
      : Logistic(z, primitive::binary(op_ge, z.re, primitive::like(z.re, 0)),
                 primitive::exp(primitive::neg(of(op_abs, z.re)))) {}

 private:
  Logistic(const Complex& z, const Array& on_right, const Array& size)
      : Logistic(on_right, size, primitive::select(on_right, primitive::neg(z.im), z.im)) {}
  Logistic(const Array& on_right, const Array& size, const Array& y)
      : right(on_right),
        power(primitive::mul(size, of(op_cos, y)), primitive::mul(size, of(op_sin, y))),
        share(Complex(one(y), primitive::like(y, 0)) / plus_one(power)) {}
};
Complex logistic_value(const Complex& z) {
  const Logistic l(z);
  return chosen(l.right, l.share, l.power * l.share);
}
Complex logistic_slope_value(const Complex& z) {
  const Logistic l(z);
  return l.power * l.share * l.share;
}

// Both are scaled by a power of 2 if a square would overflow or underflow.
Complex atan2_value(const Complex& given_y, const Complex& given_x) {
  const auto largest = [](const Complex& z) {
    return primitive::binary(op_max, of(op_abs, z.re), of(op_abs, z.im));
  };
  const Array size = primitive::binary(op_max, largest(given_y), largest(given_x));
  const double far = is_double(size) ? 0x1p500 : 0x1p60;
  const auto by = [&](const Complex& z, const Array& factor) {
    return Complex(primitive::mul(z.re, factor), primitive::mul(z.im, factor));
  };
  const Array factor =
      primitive::select(is_above(size, far), primitive::like(size, 1 / far / 16),
                        primitive::select(is_above(size, 1 / far), one(size), primitive::like(size, far)));
  const Complex y = by(given_y, factor), x = by(given_x, factor);
  return times_minus_i(log_value((x + times_i(y)) / sqrt_value(x * x + y * y)));
}

}  // namespace

Complex exp(const Complex& z) { return with_slope(Known::exp, z, exp_value); }
Complex expm1(const Complex& z) { return with_slope(Known::expm1, z, expm1_value); }
Complex exp2(const Complex& z) { return with_slope(Known::exp2, z, exp2_value); }
Complex log(const Complex& z) { return with_slope(Known::log, z, log_value); }
Complex log1p(const Complex& z) { return with_slope(Known::log1p, z, log1p_value); }
Complex log2(const Complex& z) { return times(log(z), std::numbers::log2e); }
Complex log10(const Complex& z) { return times(log(z), std::numbers::log10e); }
Complex sqrt(const Complex& z) { return with_slope(Known::sqrt, z, sqrt_value); }
Complex rsqrt(const Complex& z) {
  return with_slope(Known::rsqrt, z, [](const Complex& x) {
    return Complex(one(x.re), primitive::like(x.im, 0)) / sqrt_value(x);
  });
}
Complex sin(const Complex& z) { return with_slope(Known::sin, z, sin_value); }
Complex cos(const Complex& z) { return with_slope(Known::cos, z, cos_value); }
Complex sinh(const Complex& z) { return times_minus_i(sin(times_i(z))); }
Complex cosh(const Complex& z) { return cos(times_i(z)); }
Complex tanh(const Complex& z) { return with_slope(Known::tanh, z, tanh_value); }
Complex sech_squared(const Complex& z) { return with_slope(Known::sech_squared, z, sech_squared_value); }
Complex tan(const Complex& z) { return times_minus_i(tanh(times_i(z))); }
Complex asin(const Complex& z) { return with_slope(Known::asin, z, asin_value); }
Complex acos(const Complex& z) { return with_slope(Known::acos, z, acos_value); }
Complex asinh(const Complex& z) { return times_minus_i(asin(times_i(z))); }
Complex acosh(const Complex& z) { return with_slope(Known::acosh, z, acosh_value); }
Complex atanh(const Complex& z) { return with_slope(Known::atanh, z, atanh_value); }
Complex atan(const Complex& z) { return times_minus_i(atanh(times_i(z))); }
Complex logistic(const Complex& z) { return with_slope(Known::logistic, z, logistic_value); }
Complex logistic_slope(const Complex& z) {
  return with_slope(Known::logistic_slope, z, logistic_slope_value);
}

Complex atan2(const Complex& y, const Complex& x) { return with_slope(Known::atan2, y, x, atan2_value); }
Complex sign(const Complex& given) {
  const Tamed small({of(op_stop_gradient, given.re), of(op_stop_gradient, given.im)});
  const Array size = size_of(small.z), by = primitive::select(is_zero(size), one(size), size);
  return {primitive::div(small.z.re, by), primitive::div(small.z.im, by)};
}
// (|x| - |y|) (|x| + |y|), expanded into summands of one sign: avoids inf - inf.
Complex square(const Complex& z) {
  return with_slope(Known::square, z, [](const Complex& given) {
    const Array x = of(op_abs, given.re), y = of(op_abs, given.im), apart = primitive::sub(x, y);
    return Complex(primitive::add(primitive::mul(apart, x), primitive::mul(apart, y)),
                   scaled(primitive::mul(given.re, given.im), 2));
  });
}

// 0 to the power 0 is 1, to any other power 0.
Complex pow(const Complex& base, const Complex& exponent) {
  return with_slope(Known::pow, base, exponent, [](const Complex& a, const Complex& b) {
    const Array zero = primitive::like(a.re, 0);
    const Array origin = primitive::binary(op_and, is_zero(a.re), is_zero(a.im)),
                none = primitive::binary(op_and, is_zero(b.re), is_zero(b.im));
    const Complex power = chosen(origin, {zero, zero}, exp_value(b * log_value(a)));
    return chosen(none, {one(zero), zero}, power);
  });
}

}  // namespace shardarray::complex_ops

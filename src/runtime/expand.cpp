#include <fmt/format.h>

#include "runtime/expand_value.h"
#include "shardarray/error.h"

namespace shardarray::expand {

void refuse_width(const char* function, DType t) {
  throw InternalError(
      fmt::format("expand: {} of a {} value. Elementary functions take float32 and float64. Cast it first.",
                  function, short_name(t)));
}
void refuse_widths(const char* function, DType t, DType u) {
  throw InternalError(
      fmt::format("expand: {} of {} and {} values. Elementary functions take two float32 or two float64. "
                  "Cast them first.",
                  function, short_name(t), short_name(u)));
}

namespace {

// Double-float32 constants: the high part leaves room for an exact product with an exponent.
constexpr double ln2_hi = 0.693359375, ln2_lo = -2.12194440054690583e-4;
constexpr double pi_hi = 0x1.921fb6p+1, pi_lo = -0x1.777a5cp-24;

/// x = n ln2 + r, |r| <= ln2 / 2; the low bits of the int32 `n` hold n + bias.
struct Reduced {
  V n, r;
};
Reduced reduce_exp(V x, int bias) {
  // The sum has no fraction bits, so it is rounded and its low bits hold n.
  const double large = 0x1.8p23 + bias;
  const V sum = fma(x, 1.44269504088896341, x.of(large)), n = sum - large;
  return {bits(sum, int32), fma(n, -ln2_lo, fma(n, -ln2_hi, x))};
}
/// 2^n for an int32 whose low 8 bits are n + 127, n in -126 .. 127.
V power_of_two(V biased) { return bits(biased << 23, float32); }

V exp_of_rest(V r) {
  return polynomial(r, {0.00139269186, 0.0083637666, 0.0416665487, 0.166665733, 0.5, 1, 1});
}
/// For x in -104 .. 89.
V exp_inside(V x) {
  const auto [n, r] = reduce_exp(x, 2 * 127);
  const V half = n >> 1;  // two exact factors: a denormal result is rounded once
  return exp_of_rest(r) * power_of_two(half) * power_of_two(n - half);
}
/// For x in -104 .. 0, with the same bits: n is in -150 .. 0, so one factor can always be 2^-31.
V exp_below_one(V x) {
  const auto [n, r] = reduce_exp(x, 127 + 31);  // even like 2 * 127, so that ties of n round the same way
  return exp_of_rest(r) * power_of_two(n) * 0x1p-31;
}
V exp32(V x) { return exp_inside(at_least(at_most(x, 89), -104)); }
/// (exp(x) - 1) / 4 for x in -25 .. 89.6, the range in which exp itself may already overflow.
V quarter_expm1(V x) {
  const auto [n, r] = reduce_exp(x, 127 - 2);
  const V q = polynomial(r, {0.00139269186, 0.0083637666, 0.0416665487, 0.166665733, 0.5});
  const V s = power_of_two(n);
  return fma(fma(r * r, q, r), s, s - 0.25);
}
V expm1_32(V x) {
  const V y = quarter_expm1(at_least(at_most(x, 89.6), -25)) * 4;
  return select(abs(x) < 0x1p-25, x, y);
}
V sinh32(V x) { return sinh_from(x, quarter_expm1(at_most(abs(x), 89.6)), 0x1p-12); }
V cosh32(V x) { return cosh_from(quarter_expm1(at_most(abs(x), 89.6))); }
V tanh32(V x) {
  const V a = abs(x), y = quarter_expm1(at_most(a + a, 20));
  return with_sign(select(a < 0x1p-13, a, y / (y + 0.5)), x);
}
V logistic32(V x) {
  const V e = exp_below_one(at_least(-abs(x), -104));
  return select(x < 0, e, x.of(1)) / (e + 1);
}

/// log(2^e (1 + f)) for f in sqrt(1/2) - 1 .. sqrt(2) - 1.
V log_of(V e, V f) {
  const V z = f * f;
  V y = polynomial(f, {0.0696975365, -0.114791878, 0.116857961, -0.124257766, 0.142490327, -0.166677982,
                       0.20000717, -0.24999997, 0.333333313});
  y = fma(e, ln2_lo, y * f * z);
  y = fma(z, -0.5, y);
  return fma(e, ln2_hi, f + y);
}
/// The exponent e (int32) of a normal x = 2^e m > 0 with m in sqrt(1/2) .. sqrt(2).
V exponent_of(V x) {
  const V i = bits(x, int32);
  return (i - word(i, 0x3f3504f3)) >> 23;
}
V scale_down(V x, V e) { return bits(bits(x, int32) - (e << 23), float32); }
V log32(V x) {
  const V tiny = x < 0x1p-126, scaled = select(tiny, x * 0x1p23, x);
  const V e = exponent_of(scaled), f = scale_down(scaled, e) - 1;
  return log_special(x, log_of(cast(e, float32) + select(tiny, x.of(-23), x.of(0)), f));
}
V log1p32(V x) {
  // u + c = 1 + x exactly; c is scaled and added to the reduced argument.
  const V u = x + 1, t = u - 1, c = (1 - (u - t)) + (x - t);
  const V e = exponent_of(u), down = bits(max((127 - e) << 23, e.of(0)), float32);
  const V f = fma(c, down, scale_down(u, e) - 1);
  return select(abs(x) < 0x1p-25, x, log_special(u, log_of(cast(e, float32), f)));
}

/// |x| = (q + r 2/pi) pi/2 with |r| <= pi/4 and q mod 4 (uint64), for every finite x: of the 256 bits of 2/pi, the 128 that matter are
/// multiplied by the 24 bits of x (Payne and Hanek).
struct Quadrant {
  V q, sine, cosine;
};
Quadrant quadrant(V x) {
  const V a = abs(x), b = cast(bits(a, uint32), uint64);
  const V mantissa = (b & word(b, 0x7fffff)) | word(b, 0x800000);
  const V at = (b >> 23) - 88;  // first needed bit of the concatenation of a zero word and 2/pi
  const V w[] = {word(b, 0), word(b, 0xa2f9836e4e441529), word(b, 0xfc2757d1f534ddc0),
                 word(b, 0xdb6295993c439041), word(b, 0xfe5163abdebbc561)};
  const V first = at < 64, second = at < 128;
  const V w0 = select(first, w[0], select(second, w[1], w[2]));
  const V w1 = select(first, w[1], select(second, w[2], w[3]));
  const V w2 = select(first, w[2], select(second, w[3], w[4]));
  const V left = at & 63, right = 64 - left;
  const V high = (w0 << left) | (w1 >> right), low = ((w1 << left) | (w2 >> right)) >> 32;
  const V turns = mantissa * high + ((mantissa * low) >> 32);  // in 2^-64 turns of 2 pi
  const V q = (turns + word(b, 1ull << 61)) >> 62;
  const V rest = cast(bits(turns - (q << 62), int64), float64);
  const V small = a < 0.785398163;
  const V r = select(small, a, cast(rest * (1.57079632679489662 * 0x1p-62), float32)), z = r * r;
  const V sine = fma(r * z, polynomial(z, {-0.000195866058, 0.00833274238, -0.166666642}), r);
  const V cosine = fma(z, fma(z, polynomial(z, {2.45466545e-05, -0.00138882967, 0.0416666642}), -0.5), 1);
  return {select(small, word(b, 0), q), sine, cosine};
}
/// `y` negated if bit 1 of q is set; NaN if x is not finite.
V turn(V x, V q, V y) {
  const V flip = cast((q & 2) << 30, uint32);
  return select(abs(x) < infinity, bits(bits(y, uint32) ^ flip, float32), x.of(nan));
}
V sin32(V x) {
  const auto [q, s, c] = quadrant(x);
  const V y = turn(x, q, select((q & 1) == 0, s, c)), sign = bits(x, uint32);
  return bits(bits(y, uint32) ^ (sign & word(sign, 0x80000000u)), float32);
}
V cos32(V x) {
  const auto [q, s, c] = quadrant(x);
  return turn(x, q + 1, select((q & 1) == 0, c, s));
}
V tan32(V x) {
  const auto [q, s, c] = quadrant(x);
  const V even = (q & 1) == 0, sign = bits(x, uint32);
  const V y = select(abs(x) < infinity, select(even, s, -c) / select(even, c, s), x.of(nan));
  return bits(bits(y, uint32) ^ (sign & word(sign, 0x80000000u)), float32);
}

/// asin(s) for s = sqrt(z) <= 1/2.
V asin_small(V s, V z) {
  return fma(s * z, polynomial(z, {0.0380850248, 0.0265545417, 0.0450013801, 0.0749885514, 0.166666731}), s);
}
V asin32(V x) {
  const V a = abs(x), big = a > 0.5;
  const V z = select(big, (1 - a) * 0.5, a * a), p = asin_small(select(big, sqrt(z), a), z);
  return with_sign(select(big, fma(p, -2, x.of(pi_hi / 2)) + pi_lo / 2, p), x);
}
V acos32(V x) {
  const V a = abs(x), big = a > 0.5;
  const V z = select(big, (1 - a) * 0.5, a * a), p = asin_small(select(big, sqrt(z), a), z);
  const V small = (pi_hi / 2 - with_sign(p, x)) + pi_lo / 2;
  return select(big, select(x > 0, p + p, fma(p, -2, x.of(pi_hi)) + pi_lo), small);
}
/// atan(t) for t in 0 .. 1.
V atan_unit(V t) {
  const V z = t * t;
  return fma(t * z,
             polynomial(z, {-0.00238699722, 0.0135077713, -0.0358715393, 0.0625016913, -0.0865688026,
                            0.110337645, -0.142785683, 0.199997395, -0.333333313}),
             t);
}
V atan32(V x) {
  const V a = abs(x), big = a > 1, r = atan_unit(select(big, 1 / a, a));
  return with_sign(select(big, (pi_hi / 2 - r) + pi_lo / 2, r), x);
}
V atan2_32(V y, V x) {
  const V ay = abs(y), ax = abs(x), steep = ay > ax;
  const V small = select(steep, ax, ay), large = select(steep, ay, ax);
  // 0/0 is 0 and inf/inf is 1 here.
  const V t = select(small == large, select(large == 0, large, x.of(1)), small / large);
  V r = atan_unit(t);
  r = select(steep, (pi_hi / 2 - r) + pi_lo / 2, r);
  const V left = bits(x, int32), negative = left < 0;
  r = with_sign(select(negative, (pi_hi - r) + pi_lo, r), y);
  return select(binary(Code::or_, x != x, y != y), x.of(nan), r);
}

/// erf for |x| < 0.92.
V erf_near(V x) {
  return fma(x,
             polynomial(x * x, {8.35189712e-05, -0.000813879247, 0.00520072971, -0.0268592965, 0.112836942,
                                -0.376126349, 0.128379166}),
             x);
}
V erf32(V x) {
  const V a = abs(x);
  const V t = at_most(a, 4);
  const V log_rest = polynomial(t, {1.6435697e-06, -4.61779127e-05, 0.000597743492, -0.00476357527,
                                    0.0264310185, -0.11009448, -0.631814539, -1.13023758, 0.000320441526});
  const V rest = quarter_expm1(log_rest) * -4;  // 1 - erfc(t)
  return select(a < 0.92, erf_near(x), with_sign(rest, x));
}
/// 1 - erf near 0; otherwise exp(a^2) erfc(a) (1 + 2a) is a polynomial of (a - 2) / (a + 2), for a = |x|.
V erfc32(V x) {
  const V a = at_most(abs(x), 10.1), q = (a - 2) / (a + 2);  // beyond: below half the smallest number
  const V p = polynomial(q, {-0.000399448327, -0.00122800109, 0.00131330907, 0.00863009691, -0.0080601424,
                             -0.0542038828, 0.164055422, -0.166031465, -0.0927639827, 1.27697837});
  const V square = a * a, lost = fma(a, a, -square);
  const V r = (p / fma(a, 2, x.of(1))) * exp_below_one(-square);
  const V tail = fma(r, -lost, r);
  return select(a < 0.5, 1 - erf_near(x), select(x < 0, 2 - tail, tail));
}
V erf_inv32(V x) {
  // log(1 - x^2): near 1 the rounding of x^2 dominates, and is JAX's; elsewhere the rounding of the difference is harmless.
  const V u = 1 - x * x, e = exponent_of(u);
  const V w = -log_of(cast(e, float32), scale_down(u, e) - 1), small = w < 5;
  const V s = select(small, w - 2.5, sqrt(w) - 3);
  constexpr double c[][2] = {
      {2.81022636e-08, -0.000200214257}, {3.43273939e-07, 0.000100950558}, {-3.5233877e-06, 0.00134934322},
      {-4.39150654e-06, -0.00367342844}, {0.00021858087, 0.00573950773},   {-0.00125372503, -0.0076224613},
      {-0.00417768164, 0.00943887047},   {0.246640727, 1.00167406},        {1.50140941, 2.83297682}};
  V p = select(small, x.of(c[0][0]), x.of(c[0][1]));
  for (int i = 1; i < 9; i++) p = fma(p, s, select(small, x.of(c[i][0]), x.of(c[i][1])));
  return select(u > 0, p * x, select(u == 0, x * infinity, x.of(nan)));
}

}  // namespace

int exp(KernelBuilder& b, int x) { return by_width(b, "exp", exp32, exp64, x); }
int expm1(KernelBuilder& b, int x) { return by_width(b, "expm1", expm1_32, expm1_64, x); }
int log(KernelBuilder& b, int x) { return expand_unary(b, Function::log, log32, x); }
int log1p(KernelBuilder& b, int x) { return expand_unary(b, Function::log1p, log1p32, x); }
int sin(KernelBuilder& b, int x) { return expand_unary(b, Function::sin, sin32, x); }
int cos(KernelBuilder& b, int x) { return expand_unary(b, Function::cos, cos32, x); }
int tan(KernelBuilder& b, int x) { return expand_unary(b, Function::tan, tan32, x); }
int asin(KernelBuilder& b, int x) { return expand_unary(b, Function::asin, asin32, x); }
int acos(KernelBuilder& b, int x) { return expand_unary(b, Function::acos, acos32, x); }
int atan(KernelBuilder& b, int x) { return expand_unary(b, Function::atan, atan32, x); }
int atan2(KernelBuilder& b, int y, int x) { return expand_binary(b, Function::atan2, atan2_32, y, x); }
int sinh(KernelBuilder& b, int x) { return by_width(b, "sinh", sinh32, sinh64, x); }
int cosh(KernelBuilder& b, int x) { return by_width(b, "cosh", cosh32, cosh64, x); }
int tanh(KernelBuilder& b, int x) { return by_width(b, "tanh", tanh32, tanh64, x); }
int erf(KernelBuilder& b, int x) { return expand_unary(b, Function::erf, erf32, x); }
int erfc(KernelBuilder& b, int x) { return expand_unary(b, Function::erfc, erfc32, x); }
int erf_inv(KernelBuilder& b, int x) { return expand_unary(b, Function::erf_inv, erf_inv32, x); }

int logistic(KernelBuilder& b, int x) {
  if (b.type(x) == float32) return logistic32({&b, x}).id;
  const V v{&b, x}, e{&b, exp(b, (-abs(v)).id)};
  return (select(v < 0, e, v.of(1)) / (e + 1)).id;
}
int lgamma(KernelBuilder& b, int x) {
  const auto wide = [](V v) {
    return cast(V{v.b, v.b->call(Function::lgamma, cast(v, float64).id)}, float32);
  };
  return expand_unary(b, Function::lgamma, wide, x);
}

}  // namespace shardarray::expand

// Powers, roots, logarithms to other bases, and inverse hyperbolic functions. float32 ones are computed in float64 and rounded once;
// float64 ones consist of calls.
#include "runtime/expand_value.h"

namespace shardarray::expand {

V log2_wide(V a) {
  const V i = bits(a, int64), e = (i - word(i, 0x3fe6a09e667f3bcd)) >> 52;
  const V m = bits(i - (e << 52), float64), s = (m - 1) / (m + 1), z = s * s;
  return fma(
      s,
      polynomial(z, {0.24296332611259117, 0.26144042332141254, 0.32061650335968256, 0.41219840046505485,
                     0.5770780172560378, 0.96179669392431311, 2.8853900817779272}),
      cast(e, float64));
}
V exp2_wide(V t) {
  const double large = 0x1.8p52 + 1023;  // as in reduce_exp
  const V sum = t + large, f = t - (sum - large);
  const V p = fma(
      f,
      polynomial(f, {7.0709778665081383e-09, 1.0205905413765595e-07, 1.3215451633221434e-06,
                     1.5252672924850737e-05, 0.00015403530424776529, 0.0013333558200794592,
                     0.0096181291076186653, 0.05550410866465167, 0.24022650695910075, 0.69314718055994617}),
      1);
  return p * bits(bits(sum, int64) << 52, float64);
}

namespace {

constexpr double ln2 = 0.69314718055994530942, log2_of_e = 1.44269504088896340736,
                 log10_of_2 = 0.30102999566398119521, log10_of_e = 0.43429448190325182765;

V pow32(V x, V y) {
  const V a = cast(abs(x), float64), wide = cast(y, float64);
  V log2 = select(a == 0, a.of(-infinity), select(a == infinity, a, log2_wide(a)));
  const V t = select(log2 == 0, log2, wide * log2);  // 1^inf is 1
  const V size = cast(exp2_wide(at_least(at_most(t, 200), -200)), float32);
  const V half = y * 0.5, integer = trunc(y) == y, odd = integer & (trunc(half) != half);
  const V sign = bits(x, int32) < 0;
  V r = select(odd & sign, -size, size);
  const V no_root = (x < 0) & (x > -infinity) & (trunc(y) != y);
  r = select(no_root | (x != x) | (y != y), x.of(nan), r);
  return select((x == 1) | (y == 0), x.of(1), r);
}

V exp2_32(V x) { return cast(exp2_wide(at_least(at_most(cast(x, float64), 200), -200)), float32); }
V exp2_64(V x) { return {x.b, x.b->call(Function::pow, x.of(2).id, x.id)}; }

V log2_32(V x) { return log_special(x, cast(log2_wide(cast(x, float64)), float32)); }
V log10_32(V x) { return log_special(x, cast(log2_wide(cast(x, float64)) * log10_of_2, float32)); }
/// x = 2^e m; x > 0 in float64. `from`: the bits of the smallest m.
struct Split {
  V e, m;
};
Split split_binary(V x, std::uint64_t from) {
  const V tiny = x < 0x1p-1022, i = bits(select(tiny, x * 0x1p54, x), int64);
  const V e = (i - word(i, from)) >> 52;
  return {cast(e, float64) - select(tiny, x.of(54), x.of(0)), bits(i - (e << 52), float64)};
}
V log2_64(V x) {
  const auto [e, m] = split_binary(x, 0x3fe6a09e667f3bcd);  // sqrt(1/2): no cancellation near 1
  return log_special(x, fma(call(Function::log, m), log2_of_e, e));
}
/// As fdlibm (e_log10.c, Sun Microsystems 1993): log10(2) in two parts, m in 1/2 .. 1 for x < 1 and in 1 .. 2 otherwise, so that powers of
/// ten have exact logarithms.
V log10_64(V x) {
  const auto [low, m_low] = split_binary(x, 0x3fe0000000000000);
  const auto [high, m_high] = split_binary(x, 0x3ff0000000000000);
  const V e = select(x < 1, low, high), m = select(x < 1, m_low, m_high);
  const V rest = e * 3.69423907715893078616e-13 + call(Function::log, m) * log10_of_e;
  return log_special(x, rest + e * 3.01029995663611771306e-01);
}

V cbrt32(V x) {
  const V a = abs(x), r = cast(exp2_wide(log2_wide(cast(a, float64)) * (1 / 3.0)), float32);
  return select((a > 0) & (a < infinity), with_sign(r, x), x);
}
/// A power refined by one Newton step, with r^3 in two parts.
V cbrt64(V x) {
  const V a = abs(x), tiny = a<0x1p-600, huge = a> 0x1p600;
  const V scale = select(tiny, x.of(0x1p600), select(huge, x.of(0x1p-600), x.of(1)));
  const V back = select(tiny, x.of(0x1p-200), select(huge, x.of(0x1p200), x.of(1)));
  const V y = a * scale, r = call(Function::pow, y, 1 / 3.0);
  const V square = r * r, square_rest = fma(r, r, -square);
  const V cube = square * r, cube_rest = fma(square, r, -cube) + square_rest * r;
  const V root = r + ((y - cube) - cube_rest) / (square * 3);
  return select((a > 0) & (a < infinity), with_sign(root * back, x), x);
}

/// asinh and atanh of a small float64 a: a + c3 a^3 + c5 a^5.
V odd_start(V a, double c3, double c5) {
  const V square = a * a;
  return fma(a * square, fma(square, c5, a.of(c3)), a);
}
V asinh32(V x) {
  const V a = abs(x), w = cast(a, float64);
  const V large = log2_wide(w + sqrt(fma(w, w, 1))) * ln2;
  const V r = cast(select(w < 0x1p-8, odd_start(w, -1 / 6.0, 3 / 40.0), large), float32);
  return with_sign(select(a < infinity, r, a), x);
}
V asinh64(V x) {
  const V a = abs(x), square = a * a;
  const V middle = call(Function::log1p, a + square / (sqrt(square + 1) + 1));
  return with_sign(select(a > 0x1p28, call(Function::log, a) + ln2, middle), x);
}
V acosh32(V x) {
  const V w = cast(x, float64), r = cast(log2_wide(w + sqrt((w - 1) * (w + 1))) * ln2, float32);
  return select(x < infinity, select(x < 1, x.of(nan), r), x);
}
V acosh64(V x) {
  const V t = x - 1, middle = call(Function::log1p, t + sqrt(t * (t + 2)));
  return select(x < 1, x.of(nan), select(x > 0x1p28, call(Function::log, x) + ln2, middle));
}
V atanh32(V x) {
  const V a = abs(x), w = cast(a, float64), large = log2_wide((w + 1) / (1 - w)) * (ln2 / 2);
  const V r = cast(select(w < 0x1p-8, odd_start(w, 1 / 3.0, 1 / 5.0), large), float32);
  return with_sign(select(a < 1, r, select(a == 1, a.of(infinity), a.of(nan))), x);
}
V atanh64(V x) {
  const V a = abs(x);
  return with_sign(call(Function::log1p, (a + a) / (1 - a)) * 0.5, x);
}

V hypot32(V x, V y) {
  const V a = cast(x, float64), b = cast(y, float64);
  return cast(sqrt(fma(a, a, b * b)), float32);
}
/// Scaled so that no square overflows or underflows.
V hypot64(V x, V y) {
  const V size = max(abs(x), abs(y)), tiny = size<0x1p-500, huge = size> 0x1p500;
  const V scale = select(tiny, x.of(0x1p600), select(huge, x.of(0x1p-600), x.of(1)));
  const V back = select(tiny, x.of(0x1p-600), select(huge, x.of(0x1p600), x.of(1)));
  const V a = x * scale, b = y * scale;
  return sqrt(fma(a, a, b * b)) * back;
}

}  // namespace

int pow(KernelBuilder& b, int x, int y) { return expand_binary(b, Function::pow, pow32, x, y); }
int exp2(KernelBuilder& b, int x) { return by_width(b, "exp2", exp2_32, exp2_64, x); }
int log2(KernelBuilder& b, int x) { return by_width(b, "log2", log2_32, log2_64, x); }
int log10(KernelBuilder& b, int x) { return by_width(b, "log10", log10_32, log10_64, x); }
int cbrt(KernelBuilder& b, int x) { return by_width(b, "cbrt", cbrt32, cbrt64, x); }
int asinh(KernelBuilder& b, int x) { return by_width(b, "asinh", asinh32, asinh64, x); }
int acosh(KernelBuilder& b, int x) { return by_width(b, "acosh", acosh32, acosh64, x); }
int atanh(KernelBuilder& b, int x) { return by_width(b, "atanh", atanh32, atanh64, x); }
int hypot(KernelBuilder& b, int x, int y) {
  const V u{&b, x}, v{&b, y}, inf = u.of(infinity);
  const V r = b.type(x) == float64 ? hypot64(u, v) : hypot32(u, v);
  return select((abs(u) == inf) | (abs(v) == inf), inf, r).id;  // even if the other operand is NaN
}

int logaddexp(KernelBuilder& b, int x, int y, bool base2) {
  const V u{&b, x}, v{&b, y}, apart = u - v, size = -abs(apart);
  const V e{&b, base2 ? exp2(b, size.id) : exp(b, size.id)}, l{&b, log1p(b, e.id)};
  const V r = max(u, v) + (base2 ? l * log2_of_e : l);
  return select(apart == apart, r, u + v).id;  // equal infinities, NaN
}

}  // namespace shardarray::expand

// Exponentials of float64. Sources: Cody and Waite's reduction, in fmas; the Taylor series up to r^13, whose rest is below 0.04 ulp for
// |r| <= ln2 / 2.
#include "runtime/expand_value.h"

namespace shardarray::expand {
namespace {

/// x = n ln2 + r + rest, |r| <= ln2 / 2, |rest| < 2^-45; the low bits of the uint64 `n` hold n + bias.
struct Reduced64 {
  V n, r, rest;
};

/// (exp(r) - 1 - r) / r^2.
V exp_tail64(V r) {
  return polynomial(
      r, {0x1.6124613a86d09p-33, 0x1.1eed8eff8d898p-29, 0x1.ae64567f544e4p-26, 0x1.27e4fb7789f5cp-22,
          0x1.71de3a556c734p-19, 0x1.a01a01a01a01ap-16, 0x1.a01a01a01a01ap-13, 0x1.6c16c16c16c17p-10,
          0x1.1111111111111p-7, 0x1.5555555555555p-5, 0x1.5555555555555p-3, 0.5});
}
/// exp(r + rest) - 1 - r.
V above_linear(V r, V rest) {
  const V both = r + rest;
  return fma(both * both, exp_tail64(both), rest);
}
Reduced64 reduce_exp64(V x, int bias) {
  constexpr double ln2_hi = 0x1.62e42fefa39efp-1, ln2_lo = 0x1.abc9e3b39803fp-56;
  // The sum has no fraction bits, so it is rounded and its low bits hold n.
  const double large = 0x1.8p52 + bias;
  const V sum = fma(x, 0x1.71547652b82fep0, x.of(large)), n = sum - large;
  return {bits(sum, uint64), fma(n, -ln2_hi, x), n * -ln2_lo};
}
/// 2^n for a uint64 whose low 11 bits are n + 1023, n in -1022 .. 1023.
V power_of_two64(V biased) { return bits(biased << 52, float64); }

/// (exp(x) - 1) / 4 for x in -40 .. 710.5, where exp itself may already overflow.
V quarter_expm1_64(V x) {
  const auto [n, r, rest] = reduce_exp64(x, 1023 - 2);
  const V s = power_of_two64(n);
  return fma(above_linear(r, rest), s, fma(r, s, s - 0.25));
}

}  // namespace

V exp64(V x) {
  const auto [n, r, rest] = reduce_exp64(at_least(at_most(x, 710), -750), 2 * 1023);
  const V half = n >> 1;  // two exact factors: a denormal result is rounded once
  return (above_linear(r, rest) + r + 1) * power_of_two64(half) * power_of_two64(n - half);
}
V expm1_64(V x) {
  const V y = quarter_expm1_64(at_least(at_most(x, 710), -40)) * 4;
  return select(abs(x) < 0x1p-54, x, y);
}
V sinh64(V x) { return sinh_from(x, quarter_expm1_64(at_most(abs(x), 710.5)), 0x1p-27); }
V cosh64(V x) { return cosh_from(quarter_expm1_64(at_most(abs(x), 710.5))); }
V tanh64(V x) {
  const V a = abs(x), y = quarter_expm1_64(at_most(a + a, 40)), d = y + 0.5, q = y / d;
  const V lost = y - (d - 0.5);  // of d
  return with_sign(select(a < 0x1p-27, a, q + (fma(-q, d, y) - q * lost) / d), x);
}

}  // namespace shardarray::expand

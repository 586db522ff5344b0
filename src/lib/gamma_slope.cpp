#include "lib/gamma_slope.h"

#include "ops/api.h"
#include "shardarray/conditional.h"
#include "shardarray/ops.h"

namespace shardarray::random {
namespace {

constexpr std::int64_t most_terms = 100'000;  // about 6 sqrt(a) are needed
constexpr double huge = 1e8;                  // beyond it a + z sqrt(a) with a normal z is exact enough
constexpr double enough = 1e-14;              // relative to the derivative: where the sums end

// Elements whose terms would be NaN.
Array has_no_value(const Array& a, const Array& x) { return ~((a > 0) & isfinite(a) & isfinite(x)); }

// P(a, x) = x^a exp(-x) / gamma(a + 1) * S, S the sum of c(n), c(0) = 1, c(n) = c(n - 1) x / (a + n).
struct Series {
  Array n, term, slope, sum, sum_slope, ends;
};
Array by_series(const Array& a, const Array& x, const Array& log_x) {
  const Array one = ones_like(x), zero = zeros_like(x);
  const Series last = while_loop(
      [](const Series& s) { return (s.n < most_terms) & ~all(s.ends); },
      [&](const Series& s) {
        const Array n = s.n + 1, by = a + n, term = s.term * x / by, slope = s.slope * x / by - term / by,
                    sum_slope = s.sum_slope + slope;
        return Series{
            n, term, slope, s.sum + term, sum_slope, s.ends | (abs(slope) <= enough * abs(sum_slope))};
      },
      Series{Array(0), one, zero, one, zero, has_no_value(a, x)});
  return -(last.sum * (log_x - digamma(a + 1)) + last.sum_slope) / a;
}

// 1 - P(a, x) = x^a exp(-x) / gamma(a) * F, F = 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ..))), whose
// convergents are p / q, scaled to q = 1 in every step.
struct Fraction {
  Array n, p, p_slope, q_slope;                          // with q = 1
  Array before, q_before, before_slope, q_before_slope;  // of the previous convergent
  Array slope, ends;
};
Array by_fraction(const Array& a, const Array& x, const Array& log_x) {
  const Array zero = zeros_like(x), first = 1 / (x + 1 - a);
  const Fraction last = while_loop(
      [](const Fraction& s) { return (s.n < most_terms) & ~all(s.ends); },
      [&](const Fraction& s) {
        const Array n = s.n + 1, b = x + 2 * n + 1 - a, c = n * (a - n);
        const Array p = b * s.p + c * s.before, q = b + c * s.q_before,
                    p_slope = b * s.p_slope - s.p + c * s.before_slope + n * s.before,
                    q_slope = b * s.q_slope - 1 + c * s.q_before_slope + n * s.q_before;
        const Array scale = 1 / q, slope = (p_slope - p * scale * q_slope) * scale;
        return Fraction{n,
                        p * scale,
                        p_slope * scale,
                        q_slope * scale,
                        s.p * scale,
                        scale,
                        s.p_slope * scale,
                        s.q_slope * scale,
                        slope,
                        s.ends | (abs(slope - s.slope) <= enough * abs(slope))};
      },
      Fraction{Array(0), first, zero, -first, zero, first, zero, zero, square(first), has_no_value(a, x)});
  return last.p * (log_x - digamma(a)) + last.slope;
}

}  // namespace

Array gamma_log_slope(const Array& a, const Array& log_x) {
  const Array wide = a.astype(float64), log_wide = log_x.astype(float64), x = exp(log_wide);
  const Array is_huge = wide > huge, is_far = ~is_huge & (x > 1) & (x > wide), is_near = ~(is_huge | is_far);
  // Elements of the other branches get arguments with which the loop ends soon.
  const Array far = by_fraction(where(is_far, wide, 1.0), where(is_far, x, 2.0), log_wide),
              near = by_series(where(is_near, wide, 1.0), where(is_near, x, 1.0), log_wide),
              of_normal = (1 + (x - wide) / (2 * wide)) / x;
  return where(is_huge, of_normal, where(is_far, far, near)).astype(log_x.dtype());
}

}  // namespace shardarray::random

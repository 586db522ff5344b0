// Special functions on the host, by other ways than the library's: for references.
#pragma once
#include <cmath>
#include <limits>
#include <numbers>

namespace shardarray::testing {

/// Recurrence up to 40, then five terms of the asymptotic series; reflected below 0. NaN at the poles.
inline long double digamma_of(long double x) {
  if (x <= 0 && x == std::floor(x)) return std::nan("");
  if (x < 0) {
    const long double angle = std::numbers::pi_v<long double> * (x - std::floor(x));
    return digamma_of(1 - x) - std::numbers::pi_v<long double> * std::cos(angle) / std::sin(angle);
  }
  long double sum = 0;
  for (; x < 40; x += 1) sum += 1 / x;
  const long double square = 1 / (x * x);
  const long double end = 1 / 252.0L - square * (1 / 240.0L - square / 132);
  return std::log(x) - 0.5L / x - square * (1 / 12.0L - square * (1 / 120.0L - square * end)) - sum;
}
/// Newton's method on the distribution's logarithm, from the side on which it converges.
inline long double normal_quantile(long double p) {
  if (!(p > 0 && p < 1)) return p == 0 ? -HUGE_VALL : p == 1 ? HUGE_VALL : std::nan("");
  if (p > 0.5L) return -normal_quantile(1 - p);
  long double x = 0;
  for (int k = 0; k < 100; k++) {
    const long double area = 0.5L * std::erfc(-x / std::numbers::sqrt2_v<long double>);
    const long double density =
        std::exp(-x * x / 2) * std::numbers::inv_sqrtpi_v<long double> / std::numbers::sqrt2_v<long double>;
    const long double step = (std::log(area) - std::log(p)) * area / density;
    x -= step;
    if (std::fabs(step) <= 4 * std::fabs(x) * std::numeric_limits<long double>::epsilon()) break;
  }
  return x;
}
/// The power series of order n: all its terms have one sign.
inline long double bessel_i_of(int n, long double x) {
  long double term = 1;
  for (int k = 1; k <= n; k++) term *= x / 2 / k;
  long double sum = term;
  for (int k = 1; std::fabs(term) > std::fabs(sum) * 1e-20L; k++)
    sum += term *= (x * x / 4) / (static_cast<long double>(k) * (k + n));
  return sum;
}
inline long double bessel_i0_of(long double x) { return bessel_i_of(0, x); }
/// In long double: the C++ library's double loses digits around 2.
inline long double exp1_of(long double x) { return -std::expint(-x); }
inline double softplus_of_host(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

}  // namespace shardarray::testing

// Gamma, polygamma and Bessel functions, the exponential integral, the inverse normal distribution.
#include <cmath>
#include <numbers>
#include <vector>

#include "runtime/expand_value.h"

namespace shardarray::expand {
namespace {

using std::numbers::pi;

double factorial(int n) { return std::tgamma(n + 1.0); }
/// x^n by multiplication, n >= 1.
V whole_power(V x, int n) {
  V r = x;
  for (int k = 1; k < n; k++) r = r * x;
  return r;
}
/// Computes both widths in float64. Constants of a float32 kernel are cast from it.
template <class F> int through_float64(KernelBuilder& b, int x, const F& f) {
  const bool wide = b.type(x) == float64;
  const V r = f(wide ? V{&b, x} : cast(V{&b, x}, float64));
  return (wide ? r : cast(r, float32)).id;
}

/// For x > 0: recurrence (DLMF 5.5.2 and 5.15.5) up to y >= 10, then the asymptotic series 5.11.2 and 5.15.8. n = 0 is digamma.
V polygamma_positive(V x, int n) {
  constexpr double bernoulli[] = {1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,     5.0 / 66,
                                  -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};
  V y = x, sum = x.of(0);
  for (int k = 0; k < 10; k++) {
    const V below = y < 10;
    sum = select(below, sum + 1 / whole_power(y, n + 1), sum);
    y = select(below, y + 1, y);
  }
  const V inverse = 1 / y, square = inverse * inverse;
  V series = x.of(0);
  for (int k = 10; k >= 1; k--) {
    double c = bernoulli[k - 1] / (2 * k);  // times (2k + n - 1)! / (2k - 1)!
    for (int j = 0; j < n; j++) c *= 2 * k + j;
    series = (series + c) * square;
  }
  if (n == 0) return ((call(Function::log, y) - inverse * 0.5) - series) - sum;
  const V tail = (series + inverse * (factorial(n) / 2)) + factorial(n - 1);
  const V size = tail * whole_power(inverse, n) + sum * factorial(n);
  return n % 2 == 0 ? -size : size;
}
/// The n-th derivative of cot(pi x), as a polynomial of the cotangent.
V cotangent_derivative(V x, int n) {
  std::vector<double> p = {0, 1};
  for (int k = 0; k < n; k++) {  // d/dx = -pi (1 + c^2) d/dc
    std::vector<double> next(p.size() + 1, 0.0);
    for (std::size_t j = 1; j < p.size(); j++) {
      const double slope = -pi * static_cast<double>(j) * p[j];
      next[j - 1] += slope;
      next[j + 1] += slope;
    }
    p = std::move(next);
  }
  const V angle = (x - unary(Code::round, x)) * pi;  // the fraction is exact
  const V c = call(Function::cos, angle) / call(Function::sin, angle);
  V r = x.of(p.back());
  for (std::size_t j = p.size() - 1; j-- > 0;) r = fma(r, c, p[j]);
  return r;
}
/// Reflection for x <= 0 (DLMF 5.5.4, 5.15.6).
V polygamma64(V x, int n) {
  const V left = binary(Code::le, x, x.of(0)), y = polygamma_positive(select(left, 1 - x, x), n);
  const V other = n % 2 == 0 ? y : -y, reflected = other - cotangent_derivative(x, n) * pi;
  const V pole = left & (unary(Code::floor, x) == x);
  return select(pole, x.of(n % 2 == 0 ? nan : infinity), select(left, reflected, y));
}

/// exp(-a) I_n(x) or I_n(x), with a = |x|. Up to 30 the power series (DLMF 10.25.2), whose terms are positive; beyond, the asymptotic one
/// (10.40.1), whose error is below exp(-60). exp(x / 2) is applied twice because exp(x) overflows before the result, which is infinite from
/// 714 on.
V bessel64(V x, int n, bool scaled) {
  const V a = abs(x), near = at_most(a, 30), far = at_least(scaled ? a : at_most(a, 2000), 30),
          half = near * 0.5, z = half * half;
  V p = x.of(1);
  for (int k = 64; k >= 1; k--) p = fma(p, z * (1.0 / (k * (k + n))), 1);
  if (n > 0) p = p * whole_power(half, n) * (1 / factorial(n));
  const V inverse = 1 / far;
  V q = x.of(1);
  for (int k = 20; k >= 1; k--) {
    const double odd = 2 * k - 1;
    q = fma(q, inverse * (-(4.0 * n * n - odd * odd) / (8.0 * k)), 1);
  }
  V size;
  if (scaled) {
    size = select(a > 30, q / (sqrt(far) * std::sqrt(2 * pi)), p * exp64(-near));
  } else {
    const V root = exp64(far * 0.5);
    const V large = (root * (q / sqrt(far * (2 * pi)))) * root;
    size = select(a < infinity, select(a > 30, large, p), a);
  }
  return n % 2 == 0 ? size : select(x < 0, -size, size);
}

/// Recurrence (DLMF 5.5.1) to 10 .. 11 or more, there Stirling's series (5.11.1); reflection (5.5.3) left of -1. y^(y - 1/2) is computed as
/// a square because it overflows before the result. Integers are products, exact up to 22!.
V gamma64(V x) {
  constexpr double bernoulli[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                  5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};
  const V left = x < -1, size = select(left, -x, x),
          a = at_most(size, 250);  // infinite there; zero below -250
  V product = x.of(1), steps = x.of(0);
  for (int k = 0; k <= 10; k++) {
    const V factor = k == 0 ? a : a + k, below = factor < 10;  // keeps -0
    product = select(below, product * factor, product);
    steps = select(below, steps + 1, steps);
  }
  const V y = a + steps, lost = a - (y - steps);  // rounding error of y, times digamma(10.5)
  const V inverse = 1 / y, square = inverse * inverse;
  V series = x.of(0);
  for (int k = 8; k >= 1; k--) series = series * square + bernoulli[k - 1] / (2 * k * (2 * k - 1));
  const V power{x.b, x.b->call(Function::pow, y.id, (y * 0.5 - 0.25).id)};
  const V rest = exp64(-y) * exp64(series * inverse) * fma(lost, 2.3, x.of(1)) * std::sqrt(2 * pi);
  const V first = (power * rest) / product, whole = unary(Code::round, x), angle = (x - whole) * pi;
  const V half = whole * 0.5, sine = call(Function::sin, angle),
          turned = select(unary(Code::floor, half) == half, sine, -sine);
  const V reflected = -((1 / (x * turned)) * pi / first) / power;
  V product_below = x.of(1);
  for (int k = 2; k <= 22; k++) product_below = select(x > k, product_below * k, product_below);
  const V is_whole = unary(Code::floor, x) == x, is_exact = is_whole & (x > 0) & (x < 24),
          pole = is_whole & (x < 0);
  return select(pole, x.of(nan), select(is_exact, product_below, select(left, reflected, first * power)));
}

/// The power series (DLMF 6.6.2) up to 1. Beyond, x exp(x) E1(x) is a polynomial of (x - 2) / (x + 2), interpolated at Chebyshev points of
/// 1 .. inf. exp(-x / 2) is applied twice so that a denormal result is rounded once.
V exp1_64(V x) {
  const V near = at_most(x, 1);
  V series = x.of(0);
  for (int k = 18; k >= 1; k--) series = fma(series, near, (k % 2 ? 1 : -1) / (k * factorial(k)));
  const V small = (series * near - std::numbers::egamma) - call(Function::log, near);
  const V far = at_most(at_least(x, 1), 2000), root = exp64(far * -0.5);
  const V p = polynomial(
      (far - 2) / (far + 2),
      {0.0001419265119839803, -0.0011949169644931185, 0.004456809170701935,   -0.009528222319115907,
       0.012423598821756723,  -0.009138124976918596,  0.0015132301670564125,  0.004232698057769534,
       -0.00504947181739418,  0.0033949757527320656,  -0.0024614191806761115, 0.0027673217004260406,
       -0.003408544380651014, 0.003936825710890979,   -0.004450723779563854,  0.005092786344773227,
       -0.005901456491699162, 0.006932320952234775,   -0.00823540051589344,   0.009984712613463655,
       -0.012273746969010388, 0.01562660407594374,    -0.020175893867988397,  0.027985740766472273,
       -0.038899193109751685, 0.06516778421004168,    -0.10154085691820756,   0.33594340265867123,
       0.7226572337764452});
  return select(x > 1, (root * (p / far)) * root, small);
}

/// Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution" (Applied Statistics 37, 1988), PPND16.
V quantile(V p) {
  const auto ratio = [](V x, std::initializer_list<double> top, std::initializer_list<double> bottom) {
    return polynomial(x, top) / polynomial(x, bottom);
  };
  const V q = p - 0.5, r = fma(-q, q, 0.180625);
  const V middle =
      q * ratio(r,
                {2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
                 13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608},
                {5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
                 5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1});
  const V rest = select(q < 0, p, 1 - p), l{p.b, log(*p.b, rest.id)}, root = sqrt(-l);
  const V near = ratio(
      root - 1.6,
      {7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
       3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734},
      {1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
       0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1});
  const V far = ratio(
      root - 5,
      {2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
       0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699,
       6.6579046435011037772},
      {2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
       7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1});
  const V tail = select(root > 5, far, near), signed_tail = select(q < 0, -tail, tail);
  return select(abs(q) > 0.425, select(rest == 0, q * infinity, signed_tail), middle);  // log(< 0) is NaN
}

}  // namespace

int polygamma(KernelBuilder& b, int x, int order) {
  return through_float64(b, x, [&](V v) { return polygamma64(v, order - 1); });
}
int bessel_i(KernelBuilder& b, int x, int order) {
  return through_float64(b, x, [&](V v) { return bessel64(v, order, false); });
}
int bessel_ie(KernelBuilder& b, int x, int order) {
  return through_float64(b, x, [&](V v) { return bessel64(v, order, true); });
}
int gamma(KernelBuilder& b, int x) { return through_float64(b, x, gamma64); }
int exp1(KernelBuilder& b, int x) { return through_float64(b, x, exp1_64); }
int ndtri(KernelBuilder& b, int p) { return quantile({&b, p}).id; }

}  // namespace shardarray::expand

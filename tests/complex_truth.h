// Complex functions and their derivatives in long double: C's functions by std::complex if C has them, otherwise formulas from these.
// 64 bits per part and exponents up to 16,384 hold every square and exponential that overflows complex128.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

namespace complex_truth {

using Part = long double;
using Z = std::complex<Part>;

inline Z times_i(Z z) { return {-z.imag(), z.real()}; }
inline Z plus_one(Z z) { return {1 + z.real(), z.imag()}; }
inline Z one_minus(Z z) { return {1 - z.real(), -z.imag()}; }
inline bool is_finite(Z z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }
inline bool is_infinite(Z z) { return std::isinf(z.real()) || std::isinf(z.imag()); }
/// C's quotient; 0 for a finite number by an infinite one.
inline Z over(Z a, Z b) { return is_finite(a) && is_infinite(b) ? Z(0) : a / b; }
/// 1 / (a b).
inline Z over_both(Z a, Z b) { return over(over(1, a), b); }

inline Z expm1(Z z) {
  if (!is_finite(z)) return std::exp(z) - Part(1);
  const Part half = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half, std::exp(z).imag()};
}
inline Z exp2(Z z) {  // std::exp would double the rounding of x ln 2
  const Z turn = std::exp(Z(0, z.imag() * std::numbers::ln2_v<Part>));
  const Part size = std::exp2(z.real());
  return {size * turn.real(), z.imag() == 0 ? z.imag() : size * turn.imag()};
}
inline Z log1p(Z z) {
  if (!(std::abs(z) < 0.5L)) return std::log(plus_one(z));
  return {0.5L * std::log1p(z.real() * (2 + z.real()) + z.imag() * z.imag()),
          std::atan2(z.imag(), 1 + z.real())};
}
inline Z logistic(Z z) {
  const bool right = z.real() >= 0;
  const Z e = std::exp(right ? -z : z);
  return over(right ? Z(1) : e, plus_one(e));
}
/// 1 / cosh(z)^2.
inline Z sech_squared(Z z) {
  const Part x = std::abs(z.real()), y = std::signbit(z.real()) ? -z.imag() : z.imag();
  if (x > 40) return 4 * std::exp(-2 * x) * Z(std::cos(2 * y), -std::sin(2 * y));
  const Z c = std::cosh(z);
  return Part(1) / (c * c);
}
inline Z asin_slope(Z z) { return over_both(std::sqrt(one_minus(z)), std::sqrt(plus_one(z))); }
inline Z atanh_slope(Z z) { return over_both(plus_one(z), one_minus(z)); }

}  // namespace complex_truth

// Complex numbers by real arithmetic on their parts: what ops are of complex operands (Op::on_parts).
#pragma once
#include "ops/record.h"

namespace shardarray {

extern const Op op_real, op_imag, op_complex;

namespace primitive {

/// The parts of a complex array; of a real one itself and zeros.
Array real(const Array& z);
Array imag(const Array& z);
/// The complex array with these parts, of float32 or float64.
Array pair(const Array& re, const Array& im);
/// The conjugate numbers; of a real array itself.
Array conj(const Array& z);
/// A complex or real array, times real numbers of its shape and of the dtype of its parts.
Array mul_real(const Array& z, const Array& by);

}  // namespace primitive

/// A complex array in its parts.
struct Complex {
  Array re, im;
  Complex(Array real_part, Array imag_part) : re(std::move(real_part)), im(std::move(imag_part)) {}
  explicit Complex(const Array& z) : re(primitive::real(z)), im(primitive::imag(z)) {}
  Array joined() const { return primitive::pair(re, im); }
};
Complex operator+(const Complex& a, const Complex& b);
Complex operator-(const Complex& a, const Complex& b);
Complex operator-(const Complex& a);
Complex operator*(const Complex& a, const Complex& b);
/// By the larger part of b first (Smith, "Algorithm 116: Complex division"), so that no square overflows.
Complex operator/(const Complex& a, const Complex& b);
/// a where the condition is true, else b.
Complex chosen(const Array& condition, const Complex& a, const Complex& b);
Complex times(const Complex& a, double by);

namespace complex_ops {

using OnParts = Arrays (*)(std::span<const Array> in, const Attrs& attrs);

/// The op on all real parts, and on all imaginary ones; real operands take part in both. Of what is linear over the reals.
template <const Op& op> Arrays each_part(std::span<const Array> in, const Attrs& attrs) {
  Arrays re, im;
  for (const Array& x : in) {
    const bool is_pair = is_complex(type_of(x).dtype);
    re.push_back(is_pair ? primitive::real(x) : x);
    im.push_back(is_pair ? primitive::imag(x) : x);
  }
  return {primitive::pair(record(op, re, attrs), record(op, im, attrs))};
}
/// Of what is linear in each of its two operands: by the four products of their parts.
template <const Op& op> Arrays of_products(std::span<const Array> in, const Attrs& attrs) {
  const auto product = [&](const Array& a, const Array& b) { return record(op, {a, b}, attrs); };
  const Complex a(in[0]), b(in[1]);
  return {primitive::pair(primitive::sub(product(a.re, b.re), product(a.im, b.im)),
                          primitive::add(product(a.re, b.im), product(a.im, b.re)))};
}
/// f of complex operands.
template <Complex (*f)(const Complex&)> Arrays of_one(std::span<const Array> in, const Attrs&) {
  return {f(Complex(in[0])).joined()};
}
template <Complex (*f)(const Complex&, const Complex&)>
Arrays of_two(std::span<const Array> in, const Attrs&) {
  return {f(Complex(in[0]), Complex(in[1])).joined()};
}
/// With a real or bool result.
template <Array (*f)(const Complex&)> Arrays real_of_one(std::span<const Array> in, const Attrs&) {
  return {f(Complex(in[0]))};
}
template <Array (*f)(const Complex&, const Complex&)>
Arrays real_of_two(std::span<const Array> in, const Attrs&) {
  return {f(Complex(in[0]), Complex(in[1]))};
}

/// A number that is real scales, or divides, both parts.
Arrays mul(std::span<const Array> in, const Attrs& attrs);
Arrays div(std::span<const Array> in, const Attrs& attrs);
/// Constant, as JAX has it.
Complex sign(const Complex& z);
Complex square(const Complex& z);
/// |z| without overflow; its derivative is 0 at 0, as JAX's.
Array abs(const Complex& z);
Array eq(const Complex& a, const Complex& b);
Array ne(const Complex& a, const Complex& b);
/// By the real parts, where these are equal by the imaginary ones: numpy's order.
Array lt(const Complex& a, const Complex& b);
Array le(const Complex& a, const Complex& b);
Array gt(const Complex& a, const Complex& b);
Array ge(const Complex& a, const Complex& b);
Complex min(const Complex& a, const Complex& b);
Complex max(const Complex& a, const Complex& b);
Array is_finite(const Complex& z);
Arrays fma(std::span<const Array> in, const Attrs& attrs);
Arrays cast(std::span<const Array> in, const Attrs& attrs);

/// Functions whose derivatives are known; sech_squared = 1 / cosh^2 is that of tanh, logistic_slope that of logistic.
enum class Known : std::uint8_t {
  exp,
  expm1,
  exp2,
  log,
  log1p,
  sqrt,
  rsqrt,
  sin,
  cos,
  tanh,
  sech_squared,
  asin,
  acos,
  acosh,
  atanh,
  logistic,
  logistic_slope,
  square,
  pow,
  atan2
};
/// value(z) with the derivative of f; value itself needs none.
Complex with_slope(Known f, const Complex& z, Complex (*value)(const Complex&));
Complex with_slope(Known f, const Complex& a, const Complex& b,
                   Complex (*value)(const Complex&, const Complex&));

Complex exp(const Complex& z);
Complex expm1(const Complex& z);
Complex exp2(const Complex& z);
Complex log(const Complex& z);
Complex log1p(const Complex& z);
Complex log2(const Complex& z);
Complex log10(const Complex& z);
Complex sqrt(const Complex& z);
Complex rsqrt(const Complex& z);
Complex sin(const Complex& z);
Complex cos(const Complex& z);
Complex tan(const Complex& z);
Complex sinh(const Complex& z);
Complex cosh(const Complex& z);
Complex tanh(const Complex& z);
Complex sech_squared(const Complex& z);
Complex asin(const Complex& z);
Complex acos(const Complex& z);
Complex atan(const Complex& z);
Complex asinh(const Complex& z);
Complex acosh(const Complex& z);
Complex atanh(const Complex& z);
Complex logistic(const Complex& z);
Complex logistic_slope(const Complex& z);
/// -i log((x + i y) / sqrt(x^2 + y^2)).
Complex atan2(const Complex& y, const Complex& x);
Complex pow(const Complex& base, const Complex& exponent);

Arrays reduce(std::span<const Array> in, const Attrs& attrs);
Arrays scan(std::span<const Array> in, const Attrs& attrs);
Arrays scatter(std::span<const Array> in, const Attrs& attrs);
Arrays sort(std::span<const Array> in, const Attrs& attrs);

}  // namespace complex_ops
}  // namespace shardarray

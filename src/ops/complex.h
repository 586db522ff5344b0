// Complex arithmetic in terms of real parts: implementations for Op::on_parts.
#pragma once
#include "ops/record.h"

namespace shardarray {

extern const Op op_real, op_imag, op_complex;

namespace primitive {

/// The parts of a complex array; for a real one, itself and zeros.
Array real(const Array& z);
Array imag(const Array& z);
/// The complex array with these float32 or float64 parts.
Array pair(const Array& re, const Array& im);
/// The complex conjugate; a real array is returned as it is.
Array conj(const Array& z);
/// A complex or real array times real numbers of the same shape, in the dtype of its parts.
Array mul_real(const Array& z, const Array& by);

}  // namespace primitive

/// A complex array as its two parts.
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
/// Divides by the larger part of b first (Smith, "Algorithm 116: Complex division"), so that no square overflows.
Complex operator/(const Complex& a, const Complex& b);
/// a where the condition is true, else b.
Complex chosen(const Array& condition, const Complex& a, const Complex& b);
Complex times(const Complex& a, double by);

namespace complex_ops {

using OnParts = Arrays (*)(std::span<const Array> in, const Attrs& attrs);

/// Applies the op to all real parts, and to all imaginary parts; real operands take part in both. For ops linear over the reals.
template <const Op& op> Arrays each_part(std::span<const Array> in, const Attrs& attrs) {
  Arrays re, im;
  for (const Array& x : in) {
    const bool is_pair = is_complex(type_of(x).dtype);
    re.push_back(is_pair ? primitive::real(x) : x);
    im.push_back(is_pair ? primitive::imag(x) : x);
  }
  return {primitive::pair(record(op, re, attrs), record(op, im, attrs))};
}
/// For bilinear ops: the four products of the parts.
template <const Op& op> Arrays of_products(std::span<const Array> in, const Attrs& attrs) {
  const auto product = [&](const Array& a, const Array& b) { return record(op, {a, b}, attrs); };
  const Complex a(in[0]), b(in[1]);
  return {primitive::pair(primitive::sub(product(a.re, b.re), product(a.im, b.im)),
                          primitive::add(product(a.re, b.im), product(a.im, b.re)))};
}
/// Wraps an f on complex operands.
template <Complex (*f)(const Complex&)> Arrays of_one(std::span<const Array> in, const Attrs&) {
  return {f(Complex(in[0])).joined()};
}
template <Complex (*f)(const Complex&, const Complex&)>
Arrays of_two(std::span<const Array> in, const Attrs&) {
  return {f(Complex(in[0]), Complex(in[1])).joined()};
}
/// The same with a real or bool result.
template <Array (*f)(const Complex&)> Arrays real_of_one(std::span<const Array> in, const Attrs&) {
  return {f(Complex(in[0]))};
}
template <Array (*f)(const Complex&, const Complex&)>
Arrays real_of_two(std::span<const Array> in, const Attrs&) {
  return {f(Complex(in[0]), Complex(in[1]))};
}

/// A real operand scales, or divides, both parts.
Arrays mul(std::span<const Array> in, const Attrs& attrs);
Arrays div(std::span<const Array> in, const Attrs& attrs);
/// Zero derivative, as in JAX.
Complex sign(const Complex& z);
Complex square(const Complex& z);
/// |z| without overflow; its derivative at 0 is 0, as in JAX.
Array abs(const Complex& z);
Array eq(const Complex& a, const Complex& b);
Array ne(const Complex& a, const Complex& b);
/// Lexicographic by real, then imaginary part: numpy's order.
Array lt(const Complex& a, const Complex& b);
Array le(const Complex& a, const Complex& b);
Array gt(const Complex& a, const Complex& b);
Array ge(const Complex& a, const Complex& b);
Complex min(const Complex& a, const Complex& b);
Complex max(const Complex& a, const Complex& b);
Array is_finite(const Complex& z);
Arrays fma(std::span<const Array> in, const Attrs& attrs);
Arrays cast(std::span<const Array> in, const Attrs& attrs);

/// Functions with known derivatives; sech_squared = 1 / cosh^2 is the derivative of tanh, logistic_slope that of logistic.
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
/// value(z) with the derivative of f; value itself is not differentiated.
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

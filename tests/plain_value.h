// Values of the plain evaluator: every element with an error bound. Nothing here or in plain_eval.h uses the library's
// arithmetic.
#pragma once
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "op_host.h"
#include "shardarray/array.h"

namespace shardarray::testing {

__extension__ typedef __int128 Wide;

/// An element: the number, with 64 bits of mantissa; the error allowed to the library (infinite: any value); and the sum of the magnitudes
/// of its summands, if it may still be a partial sum.
struct Element {
  long double value = 0;
  double error = 0, size = 0;
};
struct Plain {
  Shape shape;
  DType dtype = DType::float32;
  std::vector<Element> data;  ///< row-major
  Element at(const Shape& index) const { return data[offset(shape, index)]; }
};

inline constexpr double kAnything = std::numeric_limits<double>::infinity();

/// Real arithmetic without rounding, for derivatives by finite differences.
inline bool& real_numbers() {
  static bool on = false;
  return on;
}

inline bool is_half_type(DType t) { return t == DType::float16 || t == DType::bfloat16; }
/// Half a unit in the last place of 1.
inline double roundoff(DType t) {
  switch (t) {
    case DType::float16: return 0x1p-11;
    case DType::bfloat16: return 0x1p-8;
    case DType::float32: return 0x1p-24;
    default: return 0x1p-53;
  }
}
/// Of the type in which values of `t` are computed.
inline double computing_roundoff(DType t) { return is_half_type(t) ? 0x1p-24 : roundoff(t); }

/// To `digits` bits, multiples of 2^least at least, halves to even; above `most`: infinite.
inline double round_digits(double x, int digits, int least, double most) {
  if (x == 0 || !std::isfinite(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  const int quantum = std::max(exponent - digits, least);
  const double y = std::ldexp(std::nearbyint(std::ldexp(x, -quantum)), quantum);
  return std::abs(y) > most ? std::copysign(std::numeric_limits<double>::infinity(), y) : y;
}
/// The nearest value of a floating type; 16-bit types by way of float32.
inline double rounded_to(DType t, double x) {
  if (real_numbers() || t == DType::float64) return x;
  x = static_cast<double>(static_cast<float>(x));
  if (t == DType::float16) return round_digits(x, 11, -24, 65504);
  if (t == DType::bfloat16) return round_digits(x, 8, -133, 0x1.fep127);
  return x;
}

/// Bits of an integer type.
inline int width(DType t) { return t == DType::bool_ ? 1 : static_cast<int>(itemsize(t)) * 8; }
/// Modulo 2^width.
inline Wide wrapped(DType t, Wide x) {
  const Wide modulus = static_cast<Wide>(1) << width(t);
  x = ((x % modulus) + modulus) % modulus;
  return is_signed_integer(t) && x >= modulus / 2 ? x - modulus : x;
}
inline Wide least_of(DType t) { return is_signed_integer(t) ? -(static_cast<Wide>(1) << (width(t) - 1)) : 0; }
inline Wide most_of(DType t) {
  return (static_cast<Wide>(1) << (width(t) - (is_signed_integer(t) ? 1 : 0))) - 1;
}

/// An exact result of a type that is no float.
inline Element whole_element(DType t, Wide x) { return {static_cast<long double>(wrapped(t, x)), 0, 0}; }
/// The result `x` of a floating type before it was rounded, which may be off by `error`; it was made of `size`.
inline Element real_element(DType t, double x, double error, double size = 0) {
  if (real_numbers()) return {x, 0, 0};
  const double y = rounded_to(t, x);
  Element e{y, 0, std::max(size, std::abs(y))};
  if (std::isnan(x)) e.error = error > 0 ? kAnything : 0;
  else if (error > 0) e.error = std::max(rounded_to(t, x + error) - y, y - rounded_to(t, x - error));
  if (std::isnan(e.error)) e.error = kAnything;
  return e;
}
/// A result that may be anything.
inline Element unknown_element(Element e) {
  e.error = kAnything;
  return e;
}

/// Elements from doubles, as they are rounded to the type.
inline Plain plain_of(const std::vector<double>& v, const Shape& shape, DType t) {
  Plain p{shape, t, {}};
  for (double x : v)
    p.data.push_back(is_floating(t) ? real_element(t, x, 0) : whole_element(t, static_cast<Wide>(x)));
  return p;
}

/// The values of an array, exactly.
inline std::vector<long double> exact_values(const Array& x) {
  std::vector<long double> r;
  if (x.dtype() == DType::int64)
    for (std::int64_t v : x.to_vector<std::int64_t>()) r.push_back(v);
  else if (x.dtype() == DType::uint64)
    for (std::uint64_t v : x.to_vector<std::uint64_t>()) r.push_back(v);
  else
    for (double v : x.to_vector<double>()) r.push_back(v);
  return r;
}

inline std::string number_text(long double x, bool as_integer = false) {
  char buffer[48];
  if (as_integer) std::snprintf(buffer, sizeof buffer, "%.0Lf", x);
  else std::snprintf(buffer, sizeof buffer, "%.9Lg", x);
  return buffer;
}

/// Empty when `got` may stand for `want`.
inline std::string plain_difference(const Array& got, const Plain& want) {
  if (!(got.shape() == want.shape) || got.dtype() != want.dtype)
    return std::string(short_name(got.dtype())) + to_string(got.shape()) + ", by plain loops " +
           short_name(want.dtype) + to_string(want.shape);
  const std::vector<long double> values = exact_values(got);
  for (std::size_t k = 0; k < values.size(); k++) {
    const long double g = values[k], w = want.data[k].value;
    const double error = want.data[k].error;
    if (error == kAnything || g == w || (std::isnan(g) && std::isnan(w))) continue;
    if (std::abs(g - w) <= error) continue;
    const bool exact = !is_floating(want.dtype);
    return "element " + std::to_string(k) + " of " + to_string(want.shape) + " is " + number_text(g, exact) +
           ", by plain loops " + number_text(w, exact) +
           (error > 0 ? " within " + number_text(error) : std::string());
  }
  return "";
}

}  // namespace shardarray::testing

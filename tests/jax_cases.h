// Cases of ops.json: numbers that JAX printed, and how near results must come to them.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "golden.h"

namespace jax_cases {

using golden::Json;
using shardarray::Array;
using shardarray::DType;
using Arrays = std::vector<Array>;

/// As golden::array; 64-bit integers keep all digits, weak numbers are weak.
inline Array input(const Json& j) {
  const DType t = golden::dtype_named(j["dtype"]);
  const shardarray::Shape shape = golden::shape_of(j["shape"]);
  if (t == DType::int64) return shardarray::array(j["data"].get<std::vector<std::int64_t>>(), shape);
  if (t == DType::uint64) return shardarray::array(j["data"].get<std::vector<std::uint64_t>>(), shape);
  return golden::array(j);
}

/// How far numbers may be apart; all zero: they are the same, but for the bits of a NaN.
struct Tolerance {
  double ulps = 0;          ///< units in the last place
  double rel = 0, abs = 0;  ///< of the larger one; absolute
  bool exact() const { return ulps == 0 && rel == 0 && abs == 0; }
};

inline int digits_of(DType t) {  // of the significand, in bits
  switch (t) {
    case DType::float16: return 11;
    case DType::bfloat16: return 8;
    case DType::float64:
    case DType::complex128: return 53;
    default: return 24;
  }
}
inline double smallest_normal(DType t) {
  return t == DType::float16                             ? std::ldexp(1.0, -14)
         : t == DType::float64 || t == DType::complex128 ? std::numeric_limits<double>::min()
                                                         : std::numeric_limits<float>::min();
}

/// XLA flushes some sub-normal numbers and keeps others: they are as good as zero.
inline bool near(double got, double want, DType t, const Tolerance& tolerance) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (got == want) return !tolerance.exact() || std::signbit(got) == std::signbit(want);
  const double tiny = smallest_normal(t);
  if (is_inexact(t) && std::abs(got) <= tiny && std::abs(want) <= tiny) return true;
  if (tolerance.exact() || std::isinf(got) || std::isinf(want)) return false;
  const double larger = std::max(std::abs(got), std::abs(want));
  const double ulp = std::ldexp(1.0, std::ilogb(std::max(larger, tiny)) - digits_of(t) + 1);
  return std::abs(got - want) <= tolerance.ulps * ulp + tolerance.rel * larger + tolerance.abs;
}

/// Complex numbers as pairs.
inline std::vector<double> numbers_of(const Array& x) {
  if (!is_complex(x.dtype())) return golden::values(x);
  std::vector<double> r;
  for (const auto& z : shardarray::testing::everywhere(x).to_vector<std::complex<double>>()) {
    r.push_back(z.real());
    r.push_back(z.imag());
  }
  return r;
}
inline std::vector<double> numbers_of(const Json& array) {
  std::vector<double> r;
  for (const Json& v : array["data"]) {
    if (v.is_array())
      for (const Json& part : v) r.push_back(golden::number(part));
    else r.push_back(golden::number(v));
  }
  if (array["dtype"] == "float32" || array["dtype"] == "complex64")
    for (double& v : r) v = static_cast<float>(v);  // decimals that are short
  return r;
}

/// What is wrong with the type; empty: nothing.
inline std::string differs_in_type(const Array& got, const Json& want) {
  const DType t = golden::dtype_named(want["dtype"]);
  const bool weak = want.value("weak_type", false);
  if (got.shape() != golden::shape_of(want["shape"]))
    return fmt::format("shape {}, JAX {}", shardarray::to_string(got.shape()), want["shape"].dump());
  if (got.dtype() != t || got.weak_type() != weak)
    return fmt::format("{}{}, JAX {}{}", shardarray::name(got.dtype()), got.weak_type() ? "*" : "",
                       shardarray::name(t), weak ? "*" : "");
  return "";
}
/// Which elements are not near.
inline std::vector<std::size_t> elements_apart(const Array& got, const Json& want,
                                               const Tolerance& tolerance) {
  const DType t = golden::dtype_named(want["dtype"]);
  std::vector<std::size_t> r;
  if (itemsize(t) == 8 && is_integer(t)) {
    const auto a = golden::bits(got), b = golden::bits(want);
    for (std::size_t k = 0; k < a.size(); k++)
      if (a[k] != b[k]) r.push_back(k);
    return r;
  }
  const std::vector<double> a = numbers_of(got), b = numbers_of(want);
  for (std::size_t k = 0; k < a.size(); k++)
    if (!near(a[k], b.at(k), t, tolerance)) r.push_back(k);
  return r;
}

/// The arrays of a case's outputs: one, a list, or by names in their order.
inline std::vector<Json> outputs_of(const Json& outputs) {
  if (outputs.contains("dtype")) return {outputs};
  std::vector<Json> r;
  for (const Json& o : outputs) r.push_back(o);
  return r;
}

}  // namespace jax_cases

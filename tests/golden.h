// Reference numbers: arrays in the JSON files of tests/data, and comparisons with them.
#pragma once
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "everywhere.h"
#include "shardarray/shardarray.h"
#include "sources.h"

namespace golden {

using Json = nlohmann::json;

inline Json load(const std::string& name) {
  std::ifstream in(shardarray::testing::data_file(name));
  REQUIRE_MESSAGE(in.good(), name);
  return Json::parse(in);
}
inline shardarray::Shape shape_of(const Json& j) {
  return shardarray::Shape(j.get<std::vector<std::int64_t>>());
}
inline shardarray::DType dtype_named(const std::string& name) {
  for (int k = 0; k <= static_cast<int>(shardarray::complex128); k++)
    if (name == shardarray::name(static_cast<shardarray::DType>(k))) return static_cast<shardarray::DType>(k);
  throw shardarray::Error("no dtype " + name);
}
inline double number(const Json& j) {
  return j.is_string() ? std::strtod(j.get<std::string>().c_str(), nullptr) : j.get<double>();
}
inline std::vector<double> numbers(const Json& array) {
  std::vector<double> r;
  for (const Json& v : array["data"]) r.push_back(number(v));
  return r;
}
/// Complex numbers stand in the files as pairs.
inline bool has_pairs(const Json& array) { return is_complex(dtype_named(array["dtype"])); }
inline std::vector<std::complex<double>> complex_numbers(const Json& array) {
  const std::vector<double> v = numbers(array);
  std::vector<std::complex<double>> r;
  const bool pairs = has_pairs(array);
  for (std::size_t k = 0; k < v.size(); k += pairs ? 2 : 1) r.emplace_back(v[k], pairs ? v[k + 1] : 0);
  return r;
}
inline shardarray::Array array(const Json& j) {
  const shardarray::Shape shape = shape_of(j["shape"]);
  const shardarray::DType t = dtype_named(j["dtype"]);
  return has_pairs(j) ? shardarray::array(complex_numbers(j), shape, t)
                      : shardarray::array(numbers(j), shape, t);
}
/// As complex numbers of `t`; where there are real ones in the file, as real ones of its parts.
inline shardarray::Array array_of_parts(const Json& j, shardarray::DType t) {
  const shardarray::Array z = shardarray::array(complex_numbers(j), shape_of(j["shape"]), t);
  return has_pairs(j) ? z : shardarray::real(z);
}
/// The bits of all elements as unsigned numbers.
inline std::vector<std::uint64_t> bits(const shardarray::Array& array) {
  using namespace shardarray;
  const Array x = testing::everywhere(array);
  switch (x.dtype()) {
    case DType::float32: return bitcast(x, uint32).to_vector<std::uint64_t>();
    case DType::float64: return bitcast(x, uint64).to_vector<std::uint64_t>();
    default: return x.to_vector<std::uint64_t>();
  }
}
inline std::vector<std::uint64_t> bits(const Json& array) {
  if (array.contains("bits")) return array["bits"].get<std::vector<std::uint64_t>>();
  std::vector<std::uint64_t> r;
  for (const Json& v : array["data"]) {
    if (array["dtype"] == "float32") r.push_back(std::bit_cast<std::uint32_t>(v.get<float>()));
    else if (array["dtype"] == "float64") r.push_back(std::bit_cast<std::uint64_t>(v.get<double>()));
    else
      r.push_back(v.is_number_unsigned() ? v.get<std::uint64_t>()
                                         : static_cast<std::uint64_t>(v.get<std::int64_t>()));
  }
  return r;
}
inline std::vector<double> values(const shardarray::Array& x) {
  return shardarray::testing::everywhere(x).to_vector<double>();
}
inline bool same_bits(const shardarray::Array& x, const Json& j) {
  if (x.shape() != shape_of(j["shape"]) || x.dtype() != dtype_named(j["dtype"])) return false;
  const bool half = itemsize(x.dtype()) == 2 && is_floating(x.dtype());
  return half ? values(x) == numbers(j) : bits(x) == bits(j);
}
/// Every element within `rel` of the larger one, or `abs`.
inline bool close(const std::vector<double>& a, const std::vector<double>& b, double rel, double abs = 0) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); k++) {
    const bool same = a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k]));
    if (!same && !(std::abs(a[k] - b[k]) <= abs + rel * std::max(std::abs(a[k]), std::abs(b[k]))))
      return false;
  }
  return true;
}
inline bool close(const shardarray::Array& x, const Json& j, double rel, double abs = 0) {
  return x.shape() == shape_of(j["shape"]) && close(values(x), numbers(j), rel, abs);
}

}  // namespace golden

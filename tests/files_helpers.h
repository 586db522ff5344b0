// What tests of files share.
#pragma once
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "execute/evaluate.h"
#include "process_helpers.h"
#include "shardarray/shardarray.h"
#include "sources.h"

namespace shardarray::testing {

inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes(std::filesystem::file_size(path), '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}
inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}
/// `n` of `bytes` bytes, little-endian.
inline std::string number(std::uint64_t n, std::size_t bytes) {
  std::string r;
  for (std::size_t k = 0; k < bytes; k++) r += static_cast<char>(k < 8 ? n >> 8 * k & 255 : 0);
  return r;
}
inline void put(std::string& bytes, std::size_t at, const std::string& part) {
  bytes.replace(at, part.size(), part);
}

/// The elements' bytes, row-major, as hexadecimal digits.
inline std::string hex_of(const Array& x) {
  std::string r;
  for (const std::byte b : host_elements(x, "test")) {
    r += "0123456789abcdef"[static_cast<int>(b) >> 4];
    r += "0123456789abcdef"[static_cast<int>(b) & 15];
  }
  return r;
}
/// What tests/reference/files.py wrote: file -> array -> {dtype, shape, bytes}.
inline nlohmann::json python_files() {
  std::ifstream in(data_file("files/files.json"));
  return nlohmann::json::parse(in)["files"];
}
/// Whether `x` is what Python says.
inline std::string difference(const Array& x, const nlohmann::json& wanted) {
  const std::string dtype = wanted["dtype"];
  if (name(x.dtype()) != dtype) return std::string(name(x.dtype())) + " instead of " + dtype;
  const Shape shape(wanted["shape"].get<std::vector<std::int64_t>>());
  if (x.shape() != shape) return to_string(x.shape()) + " instead of " + to_string(shape);
  const std::string bytes = wanted["bytes"];
  return hex_of(x) == bytes ? "" : hex_of(x) + " instead of " + bytes;
}

/// The text of the E that f throws, where `path` is put as PATH.
template <class E = IoError, class F> std::string said_of(const std::string& path, const F& f) {
  try {
    f();
  } catch (const E& e) {
    std::string text = e.text();
    for (std::size_t at = 0; (at = text.find(path, at)) != text.npos;) text.replace(at, path.size(), "PATH");
    return text;
  }
  return "nothing was thrown";
}

/// All dtypes that arrays have.
inline const std::vector<DType>& stored_dtypes() {
  static const std::vector<DType> all{DType::bool_,  DType::int8,    DType::int16,    DType::int32,
                                      DType::int64,  DType::uint8,   DType::uint16,   DType::uint32,
                                      DType::uint64, DType::float16, DType::bfloat16, DType::float32,
                                      DType::float64};
  return all;
}
/// 0, 1, 2, ... of a dtype, which Python makes too (check() of tests/reference/files.py).
inline Array counted(DType t, const Shape& shape) {
  const Array n = arange(num_elements(shape));
  return (t == DType::bool_ ? n % 2 == 1 : n.astype(t)).reshape(shape);
}

}  // namespace shardarray::testing

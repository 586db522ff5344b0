#include "base/sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "shardarray/error.h"

namespace shardarray {

[[noreturn]] static void refuse_negative_size(const char* function, const Shape& shape) {
  throw ShapeError(
      fmt::format("{}: shape {}. Sizes are not negative. Give the number of elements of every dimension.",
                  function, to_string(shape)));
}

[[noreturn]] static void refuse_dimensions(const char* function, const Shape& shape) {
  throw ShapeError(
      fmt::format("{}: shape {} has {} dimensions. Arrays have up to {}. Merge some with reshape.", function,
                  to_string(shape), shape.size(), most_dimensions));
}

std::int64_t check_size(const char* function, const Shape& shape, DType dtype) {
  if (shape.size() > most_dimensions) refuse_dimensions(function, shape);
  auto bytes = static_cast<std::int64_t>(itemsize(dtype));
  for (const std::int64_t n : shape) {
    if (n < 0) refuse_negative_size(function, shape);
    bytes = mul_sizes(bytes, std::max<std::int64_t>(1, n));
  }
  if (bytes >= byte_limit)
    throw ShapeError(
        fmt::format("{}: shape {} of {} takes 2^62 bytes or more. Every array is smaller, also one that is "
                    "never stored. Use smaller sizes.",
                    function, to_string(shape), name(dtype)));
  return bytes;
}

std::int64_t elements_or_most(const Shape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n = size < 0 || n < 0 ? -1 : mul_sizes(n, size);
  return n;
}

std::int64_t bytes_of(const Shape& shape, DType dtype) {
  return num_elements(shape) * static_cast<std::int64_t>(itemsize(dtype));
}

std::int64_t num_elements(const Shape& s) {
  std::int64_t product = 1;
  bool fits = true;
  for (const std::int64_t n : s) {
    if (n < 0) refuse_negative_size("num_elements", s);
    fits = !__builtin_mul_overflow(product, n, &product) && fits;
  }
  if (std::find(s.begin(), s.end(), 0) != s.end()) return 0;
  if (!fits)
    throw ShapeError(
        fmt::format("num_elements: the sizes of {} multiply to more than 2^63 - 1. "
                    "An array has fewer elements than that. Use a smaller shape.",
                    to_string(s)));
  return product;
}

}  // namespace shardarray

// Saturating arithmetic of sizes, and the check that every shape passes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>

#include "shardarray/dtype.h"
#include "shardarray/shape.h"

namespace shardarray {

/// Maximum rank: kernels store dimensions in fixed arrays.
inline constexpr std::size_t most_dimensions = 32;
/// Every array has fewer bytes, even if it is never stored: the sum of two sizes then fits into 63 bits.
inline constexpr std::int64_t byte_limit = std::int64_t{1} << 62;

/// a + b and a * b of non-negative numbers. Overflow of 63 bits gives the largest number, which no shape that passes check_size reaches.
constexpr std::int64_t add_sizes(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  return __builtin_add_overflow(a, b, &r) ? std::numeric_limits<std::int64_t>::max() : r;
}
constexpr std::int64_t mul_sizes(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? std::numeric_limits<std::int64_t>::max() : r;
}

/// Throws ShapeError in the name of `function` if there are more than most_dimensions, if a size is negative, or if the strides of the
/// array (counting sizes of 0 as 1) or its bytes reach byte_limit. Returns the bytes, at least one element's.
std::int64_t check_size(const char* function, const Shape& shape, DType dtype);
/// The product of the sizes; the largest number on overflow; -1 if a size is negative.
std::int64_t elements_or_most(const Shape& shape);
/// Entries [from, to) of s; the concatenation of a and b.
inline Shape part_of(const Shape& s, std::size_t from, std::size_t to) {
  return Shape(s.begin() + from, s.begin() + to);
}
inline Shape joined_shape(Shape a, const Shape& b) {
  for (const std::int64_t v : b) a.push_back(v);
  return a;
}
/// Bytes of a shape that passed check_size.
std::int64_t bytes_of(const Shape& shape, DType dtype);

}  // namespace shardarray

// Arithmetic of sizes, which never overflows, and the one check that every shape goes through.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>

#include "shardarray/dtype.h"
#include "shardarray/shape.h"

namespace shardarray {

/// Arrays have no more dimensions: kernels count them in fixed places.
inline constexpr std::size_t most_dimensions = 32;
/// Every array has fewer bytes, also one that is never stored: the sum of two sizes then fits into 63 bits.
inline constexpr std::int64_t byte_limit = std::int64_t{1} << 62;

/// a + b and a * b of numbers that are not negative. What does not fit into 63 bits becomes the largest number,
/// which no shape that passes check_size has.
constexpr std::int64_t add_sizes(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  return __builtin_add_overflow(a, b, &r) ? std::numeric_limits<std::int64_t>::max() : r;
}
constexpr std::int64_t mul_sizes(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? std::numeric_limits<std::int64_t>::max() : r;
}

/// Throws ShapeError in the name of `function` when there are more than most_dimensions, a size is negative, or when the strides of the array (sizes of 0
/// count as 1 there) or its bytes reach byte_limit. Returns the bytes, no less than one element's.
std::int64_t check_size(const char* function, const Shape& shape, DType dtype);
/// The product of sizes; the largest number where that does not fit; -1 when a size is negative.
std::int64_t elements_or_most(const Shape& shape);
/// Entries [from, to) of s; a and behind it b.
inline Shape part_of(const Shape& s, std::size_t from, std::size_t to) {
  return Shape(s.begin() + from, s.begin() + to);
}
inline Shape joined_shape(Shape a, const Shape& b) {
  for (const std::int64_t v : b) a.push_back(v);
  return a;
}
/// Bytes of a shape that was checked.
std::int64_t bytes_of(const Shape& shape, DType dtype);

}  // namespace shardarray

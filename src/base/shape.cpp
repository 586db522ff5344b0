#include "shardarray/shape.h"

#include <fmt/format.h>

#include <ostream>

#include "shardarray/error.h"

namespace shardarray {

void Shape::grow(std::size_t n) {
  const std::size_t capacity = std::max<std::size_t>(n, 2 * std::size_t{capacity_});
  auto* fresh = new std::int64_t[capacity];
  std::copy(begin(), end(), fresh);
  release();
  heap_ = fresh;
  capacity_ = static_cast<std::uint32_t>(capacity);
}

std::int64_t num_elements(const Shape& s) {
  if (std::find(s.begin(), s.end(), 0) != s.end()) return 0;
  std::int64_t product = 1;
  for (std::int64_t n : s)
    if (__builtin_mul_overflow(product, n, &product))
      throw ShapeError(
          fmt::format("num_elements: the sizes of {} multiply to more than 2^63 - 1. "
                      "An array has fewer elements than that. Use a smaller shape.",
                      to_string(s)));
  return product;
}

std::string to_string(const Shape& s) { return fmt::format("[{}]", fmt::join(s.begin(), s.end(), ",")); }

std::ostream& operator<<(std::ostream& os, const Shape& s) { return os << to_string(s); }

}  // namespace shardarray

#include "shardarray/shape.h"

#include <fmt/format.h>

#include <ostream>

namespace shardarray {

void Shape::grow(std::size_t n) {
  const std::size_t capacity = std::max<std::size_t>(n, 2 * std::size_t{capacity_});
  auto* fresh = new std::int64_t[capacity];
  std::copy(begin(), end(), fresh);
  release();
  heap_ = fresh;
  capacity_ = static_cast<std::uint32_t>(capacity);
}

std::string to_string(const Shape& s) { return fmt::format("[{}]", fmt::join(s.begin(), s.end(), ",")); }

std::ostream& operator<<(std::ostream& os, const Shape& s) { return os << to_string(s); }

}  // namespace shardarray

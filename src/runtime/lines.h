// An array as lines along one dimension: the units of sorts and scans.
#pragma once
#include <cstddef>
#include <cstdint>

#include "shardarray/shape.h"

namespace shardarray {

/// `count` lines of `length` elements (possibly none) with stride `inner`.
struct Lines {
  std::int64_t count = 1, length = 0, inner = 1;
};
inline Lines lines_along(const Shape& shape, std::int64_t dimension) {
  const auto dim = static_cast<std::size_t>(dimension);
  Lines l;
  l.length = shape[dim];
  for (std::size_t d = 0; d < shape.size(); d++) {
    if (d != dim) l.count *= shape[d];
    if (d > dim) l.inner *= shape[d];
  }
  return l;
}

}  // namespace shardarray

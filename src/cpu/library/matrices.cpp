#include "cpu/library/matrices.h"

#include <fmt/format.h>

namespace shardarray {

Matrices matrices_of(const char* kernel, const Shape& shape, std::size_t rank) {
  Matrices x;
  const std::size_t batch = shape.size() - rank;
  for (std::size_t d = 0; d < shape.size(); d++) {
    if (d < batch) {
      x.count *= shape[d];
      continue;
    }
    if (shape[d] > std::numeric_limits<int>::max())
      throw CompileError(fmt::format(
          "{}: a matrix has {} rows or columns. LAPACK counts in 32 bits. Factorise smaller matrices.",
          kernel, shape[d]));
    (d + 1 == shape.size() ? x.n : x.m) = static_cast<int>(shape[d]);
  }
  return x;
}

}  // namespace shardarray

#include "compile/even_moves.h"

#include <algorithm>

#include "base/ceil_div.h"
#include "base/sizes.h"

namespace shardarray {

std::int64_t parts_of(const SubAxisList& list, const SubAxes& sub_axes) {
  std::int64_t parts = 1;
  for (const int a : list) parts *= sub_axes.size(a);
  return parts;
}

std::optional<std::int64_t> even_move(const SubAxisDims& from, const SubAxisDims& to, const Shape& shape,
                                      const SubAxes& sub_axes) {
  std::int64_t wanted = 1, there = 1;
  bool none_there = false;
  for (std::size_t d = 0; d < to.size(); d++) {
    const std::int64_t n = shape[d], tiles = parts_of(to[d], sub_axes), held = parts_of(from[d], sub_axes);
    if (n % tiles != 0 || n % held != 0) return std::nullopt;
    wanted *= n / tiles;
    // If neither list is a prefix of the other, the first sub-axes that differ are independent: some device holds nothing of its tile.
    const auto [a, b] = std::ranges::mismatch(from[d], to[d]);
    if (a != from[d].end() && b != to[d].end()) none_there = true;
    else there *= n / std::max(tiles, held);
  }
  return none_there ? wanted : wanted - there;
}

std::int64_t tile_elements(const SubAxisDims& dims, const Shape& shape, const SubAxes& sub_axes) {
  std::int64_t n = 1;
  for (std::size_t d = 0; d < dims.size(); d++)
    n = mul_sizes(n, ceil_div(shape[d], parts_of(dims[d], sub_axes)));
  return n;
}

}  // namespace shardarray

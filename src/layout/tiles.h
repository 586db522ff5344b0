// What all positions hold, computed at once.
#pragma once
#include <cstdint>
#include <vector>

#include "layout/layout.h"

namespace shardarray {

/// Layout::tile_index for every position.
std::vector<std::int64_t> tile_indices(const Layout& layout, int d);
/// tile_of for every position.
std::vector<Box> all_tiles(const Layout& layout, const Shape& shape);
/// How many elements of its tile in `to` each position does not hold in `from`, which has the same order.
std::vector<std::int64_t> missing_of_each(const Layout& from, const Layout& to, const Shape& shape);
/// Whether all tiles have one size and all positions already hold equally much of their targets; decided from the lists of axes alone, so
/// false may mean unknown.
bool lack_alike(const Layout& from, const Layout& to, const Shape& shape);
/// The maximum of missing_of_each. `from`: the dimensions of a layout.
std::int64_t most_missing(const std::vector<AxisList>& from, const Layout& to, const Shape& shape);
inline std::int64_t most_missing(const Layout& from, const Layout& to, const Shape& shape) {
  return most_missing(from.dims(), to, shape);
}
/// Bytes of the largest tile; the same for a layout with these dimensions.
std::int64_t tile_bytes(const std::vector<AxisList>& dims, const Shape& shape, std::int64_t itemsize);
inline std::int64_t tile_bytes(const Layout& layout, const Shape& shape, std::int64_t itemsize) {
  return tile_bytes(layout.dims(), shape, itemsize);
}

}  // namespace shardarray

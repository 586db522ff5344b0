// From "which device holds which tile" to sub-axes.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "layout/layout.h"

namespace shardarray {

/// Tiles of a value on devices, in any spelling: every tile is held by equally many devices. Partial sums are one more dimension, the
/// last, whose tiles are the summands.
struct Placement {
  OrderRef order;
  Shape counts;                                  ///< number of tiles per dimension
  std::vector<std::vector<std::int64_t>> index;  ///< [dimension][position in order] -> tile
  Reducer reducer = Reducer::none;               ///< of partial sums
};

/// The layout over `order` (the same devices, any order) that places the tiles so; null when there is none.
const Layout* factor(const Placement& placement, const DeviceOrder* order);

/// The one layout of a placement: over the sorted devices, and only where that fails over a private order:
/// tiles row-major, devices ascending within a tile. Same placement <=> same pointer.
LayoutRef canonical_layout(const Placement& placement);

/// Where `layout` places its tiles.
Placement placement_of(const Layout& layout);

/// The same placement, partial sums included, over another order of the same devices; null when `order`
/// cannot express it.
const Layout* in_order(const Layout* layout, const DeviceOrder* order);

}  // namespace shardarray

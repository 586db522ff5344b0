// Converts a map from devices to tiles into sub-axes.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "layout/layout.h"

namespace shardarray {

/// Which device holds which tile, in any spelling: every tile is held by equally many devices. Partial sums are an additional last
/// dimension, whose tiles are the summands.
struct Placement {
  OrderRef order;
  Shape counts;                                  ///< tiles per dimension
  std::vector<std::vector<std::int64_t>> index;  ///< [dimension][position in order] -> tile
  Reducer reducer = Reducer::none;               ///< of partial sums
};

/// The layout over `order` (the same devices, in any order) with this placement; null if there is none.
const Layout* factor(const Placement& placement, const DeviceOrder* order);

/// The canonical layout of a placement: over the sorted devices, or if that is impossible over a private order: tiles row-major, devices
/// ascending within a tile. Same placement <=> same pointer.
LayoutRef canonical_layout(const Placement& placement);

/// The inverse: where `layout` places its tiles.
Placement placement_of(const Layout& layout);

/// The same placement, including partial sums, over another order of the same devices; null if `order` cannot express it.
const Layout* in_order(const Layout* layout, const DeviceOrder* order);

}  // namespace shardarray

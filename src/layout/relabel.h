// Which device takes which tile, if that is free to choose.
#pragma once
#include <vector>

#include "layout/layout.h"

namespace shardarray {

/// A permutation of `to`'s devices under which an array of this shape in layout `from` keeps the most elements in place: it maximizes the
/// sum over the devices of what each already holds of its tile. Unchanged if no other order is better. Cubic in the number of devices.
/// Source: process relabelling in COSTA, https://arxiv.org/abs/2106.06601, by shortest augmenting paths (Jonker, Volgenant 1987).
std::vector<Device> nearest_devices(const Layout& from, const Layout& to, const Shape& shape);

}  // namespace shardarray

// Which device takes which tile, where that is free.
#pragma once
#include <vector>

#include "layout/layout.h"

namespace shardarray {

/// The devices of `to`'s order in the order under which an array of this shape that lies in layout `from` has most of its elements in
/// their place: of all orders, the sum over the devices of what each holds already of its tile is largest. The same where no other
/// order is better. Takes time cubic in the devices. Source: relabelling of processes in COSTA, https://arxiv.org/abs/2106.06601, by
/// shortest augmenting paths (Jonker, Volgenant 1987).
std::vector<Device> nearest_devices(const Layout& from, const Layout& to, const Shape& shape);

}  // namespace shardarray

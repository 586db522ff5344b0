// The devices of a map whose positions are devices: pmap and shard_map.
#pragma once
#include <optional>
#include <vector>

#include "graph/node.h"
#include "shardarray/sharding.h"

namespace shardarray {

/// What the device axes of one outermost map share.
struct Region {
  /// pmap: position (a, b, ...) of axes of sizes A, B, ... is device (a * B + b) * ... of the list; empty: the first ones.
  std::vector<Device> devices;
  /// pmap: how many devices one position of the outermost axis has, for the maps inside; and their axes, as far as they
  /// are the same everywhere.
  std::int64_t inside = 1;
  std::vector<std::pair<std::string, std::int64_t>> axes_inside;
  /// shard_map: axes are those of the mesh.
  std::optional<Mesh> mesh;
  /// shard_map over some axes of the mesh: the others go on as outside.
  bool partial = false;
};

/// The sharding in which dimension dims[k] (negative; 0: none) of a value of this rank lies on axes[k], innermost first.
/// The last axis is the outermost.
Sharding region_sharding(const std::vector<std::shared_ptr<const Axis>>& axes, const Shape& dims,
                         std::size_t rank);

}  // namespace shardarray

// The devices of maps whose positions are devices: pmap and shard_map.
#pragma once
#include <optional>
#include <vector>

#include "graph/node.h"
#include "shardarray/sharding.h"

namespace shardarray {

/// Shared by the device axes of one outermost map.
struct Region {
  /// pmap: position (a, b, ...) of axes of sizes A, B, ... is device (a * B + b) * ... of the list; empty: the first devices.
  std::vector<Device> devices;
  /// pmap: how many devices each position of the outermost axis has for inner maps, and the axes of those as far as they agree.
  std::int64_t inside = 1;
  std::vector<std::pair<std::string, std::int64_t>> axes_inside;
  /// shard_map: the axes are those of this mesh.
  std::optional<Mesh> mesh;
  /// shard_map over some axes of the mesh: the others stay automatic.
  bool partial = false;
};

/// The sharding of a value of this rank in which axes[k] shards dimension dims[k] (negative; 0: none). axes are innermost first.
Sharding region_sharding(const std::vector<std::shared_ptr<const Axis>>& axes, const Shape& dims,
                         std::size_t rank);

}  // namespace shardarray

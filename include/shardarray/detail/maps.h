// The type-erased core of vmap, pmap and shard_map.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardarray/array.h"
#include "shardarray/detail/path.h"
#include "shardarray/export.h"

namespace shardarray {

struct Axis;

namespace core {

using Arrays = std::vector<Array>;
/// The mapped function, on arrays that replace those of its arguments.
using MapBody = detail::FunctionRef<Arrays(std::span<const Array>)>;

// ---------------------------------------------------------------- vmap
/// An argument of vmap() or pmap(). These call `f` once, on placeholders without the mapped dimension.
struct VmapArg {
  Array array;
  std::optional<std::int64_t> axis;  ///< none: not mapped
  std::string path;                  ///< `0.layers[1].weight`, for messages
};
struct VmapResult {
  Arrays out;  ///< with the mapped dimension first where `mapped`
  std::vector<bool> mapped;
  std::int64_t size = 0;
  std::shared_ptr<const Axis> axis = nullptr;  ///< of pmap
};
SHARDARRAY_API VmapResult vmap(MapBody f, std::span<const VmapArg> args, const std::string& axis_name,
                               std::optional<std::int64_t> axis_size, const char* function, Where w);
/// Moves an output's mapped dimension to `axis`, or broadcasts an unmapped output; none requires an unmapped one.
SHARDARRAY_API Array place_axis(const VmapResult& r, std::size_t k, std::optional<std::int64_t> axis,
                                const std::string& axis_name, const char* function);

// ---------------------------------------------------------------- pmap, shard_map
/// As vmap, with row k of every mapped value on device k. `devices`: which; empty: the first ones, or inside another pmap those
/// of its position. Throws DeviceError if there are too few.
SHARDARRAY_API VmapResult pmap(MapBody f, std::span<const VmapArg> args, const std::string& axis_name,
                               std::optional<std::int64_t> axis_size, const std::vector<Device>& devices,
                               Where w);
/// place_axis for a pmap's output; none takes the first device's value.
SHARDARRAY_API Array place_device_axis(const VmapResult& r, std::size_t k, std::optional<std::int64_t> axis);

struct ShardMapArg {
  Array array;
  PartitionSpec spec;
  std::string path;
};
/// Runs `f` on the local shards of the arguments; specs may name axes in `manual` only. `out_spec(k)` is called after the trace.
SHARDARRAY_API Arrays shard_map(MapBody f, std::span<const ShardMapArg> args, const Mesh& mesh,
                                const std::vector<std::string>& manual,
                                detail::FunctionRef<PartitionSpec(std::size_t)> out_spec, Where w);

/// True inside jit, vmap, pmap or control flow on this thread.
SHARDARRAY_API bool tracing();

}  // namespace core
}  // namespace shardarray

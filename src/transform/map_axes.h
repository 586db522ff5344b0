// Shared by vmap, pmap and shard_map: sizes of mapped axes, axes in scope.
#pragma once
#include "graph/trace_state.h"
#include "shardarray/detail/maps.h"
#include "transform/trace.h"

namespace shardarray {

/// The common size of the mapped dimensions. Throws ShapeError if they differ, are out of range, or none is mapped.
std::int64_t mapped_size(std::span<const core::VmapArg> args, std::optional<std::int64_t> axis_size,
                         const char* function);
/// Arguments with their mapped dimension first, and the types that the function sees.
struct MappedRows {
  Arrays args;
  std::vector<Type> types;
  std::vector<bool> mapped;
};
MappedRows rows_of(std::span<const core::VmapArg> args);

/// RAII: brings an axis name into scope.
class ScopedAxis {
 public:
  explicit ScopedAxis(std::shared_ptr<const Axis> axis) { trace_state().axes.push_back(std::move(axis)); }
  ~ScopedAxis() { trace_state().axes.pop_back(); }
  ScopedAxis(const ScopedAxis&) = delete;
  ScopedAxis& operator=(const ScopedAxis&) = delete;
};

}  // namespace shardarray

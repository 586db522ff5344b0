// The memory of an array that lies on one CPU device: what is shown to others where it lies.
#pragma once
#include "graph/node.h"
#include "shardarray/array.h"

namespace shardarray {

/// Computed, with its memory for as long as the buffer is held. Throws in the name of `function`: ShardingError for an array on
/// several devices, DeviceError for a device that is no CPU of this process; as force().
struct ShardMemory {
  Type type;
  BufferRef buffer;
};
ShardMemory shard_memory(const char* function, const Array& x);

}  // namespace shardarray

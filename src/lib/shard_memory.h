// The memory of an array on one CPU device, for access without a copy.
#pragma once
#include "graph/node.h"
#include "shardarray/array.h"

namespace shardarray {

/// The array, computed; its memory lives as long as the buffer is held. Throws in the name of `function`: ShardingError for an array on
/// several devices, DeviceError for a device that is no CPU of this process; as force().
struct ShardMemory {
  Type type;
  BufferRef buffer;
};
ShardMemory shard_memory(const char* function, const Array& x);

}  // namespace shardarray

// Value: a materialised array: its placement and one buffer per instance.
#pragma once
#include <atomic>
#include <vector>

#include "layout/layout.h"
#include "runtime/buffer.h"
#include "shardarray/sharding.h"

namespace shardarray {

struct Value {
  const Layout* layout = nullptr;
  Sharding sharding;              ///< the spelling that users see
  bool committed = false;
  bool shared = true;             ///< replicas share one buffer: instances_of(layout, shared)
  std::vector<BufferRef> buffers;  ///< instance -> buffer
};

}  // namespace shardarray

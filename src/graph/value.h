// Value: a materialised array: its placement and one buffer per instance in this process.
#pragma once
#include <memory>

#include "base/block_pool.h"
#include "base/small_vector.h"
#include "layout/layout.h"
#include "runtime/buffer.h"
#include "runtime/completion.h"
#include "shardarray/sharding.h"

namespace shardarray {

struct Value {
  Value(const Layout* on, Sharding spelled, bool stays, bool shares)
      : layout(on), sharding(std::move(spelled)), committed(stays), shared(shares) {}
  const Layout* layout;
  Sharding sharding;  ///< as users see it
  bool committed;
  bool number = false;                ///< a literal: placed wherever it is needed
  std::uint64_t bits = 0;             ///< the literal's bits
  bool shared;                        ///< replicas share one buffer
  SmallVector<BufferRef, 8> buffers;  ///< one per addressable_instances(layout, shared) (runtime/devices.h)
  CompletionRef ready;                ///< completion of the work that writes the buffers
};
/// Tied to its devices: what is computed from it runs there.
inline bool is_bound(const Value& v) { return v.committed || v.layout->order()->size() > 1; }
using ValueRef = std::shared_ptr<Value>;
inline ValueRef make_value(const Layout* layout, Sharding sharding, bool committed, bool shared) {
  return std::allocate_shared<Value>(BlockAllocator<Value>(), layout, std::move(sharding), committed, shared);
}

}  // namespace shardarray

#include "runtime/buffer.h"

#include "runtime/backend.h"

namespace shardarray {

void Buffer::release() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) owner->deallocate(this);
}

}  // namespace shardarray

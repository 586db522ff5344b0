#include "runtime/buffer.h"

#include "runtime/backend.h"

namespace shardarray {

void Buffer::release() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (give_back != nullptr) give_back(this);
  else owner->deallocate(this);
}

namespace {

struct ForeignBuffer : Buffer {
  std::shared_ptr<const void> keeper;
};

}  // namespace

BufferRef foreign_buffer(Backend& owner, int device, const void* data, std::size_t bytes,
                         std::shared_ptr<const void> keeper) {
  auto* const b = new ForeignBuffer;
  b->data = const_cast<void*>(data);
  b->bytes = bytes;
  b->device = device;
  b->owner = &owner;
  b->keeper = std::move(keeper);
  b->give_back = [](Buffer* mine) { delete static_cast<ForeignBuffer*>(mine); };
  return BufferRef(b);
}

}  // namespace shardarray

// Small blocks that are freed and allocated again all the time (nodes, values): a free list per thread and size, so that a running program
// needs none from the system.
#pragma once
#include <cstddef>

namespace shardarray {

void* take_block(std::size_t bytes);
void give_block(void* p, std::size_t bytes) noexcept;

/// For std::allocate_shared.
template <class T> struct BlockAllocator {
  using value_type = T;
  BlockAllocator() = default;
  template <class U> BlockAllocator(const BlockAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(take_block(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) noexcept { give_block(p, n * sizeof(T)); }
  friend bool operator==(const BlockAllocator&, const BlockAllocator&) { return true; }
};

}  // namespace shardarray

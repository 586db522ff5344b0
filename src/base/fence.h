// A full fence right after an atomic read-modify-write.
#pragma once
#include <atomic>

namespace shardarray {

/// On x86 the read-modify-write is one itself.
inline void fence_after_rmw() {
#if defined(__x86_64__)
  std::atomic_signal_fence(std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace shardarray

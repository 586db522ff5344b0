// A full fence right after an atomic read-modify-write.
#pragma once
#include <atomic>
#include <memory>

namespace shardarray {

/// On x86 the read-modify-write is one itself.
inline void fence_after_rmw() {
#if defined(__x86_64__)
  std::atomic_signal_fence(std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// What others did before they gave back their shares, as use_count() just said, is seen from here on.
template <class T> void see_past_owners([[maybe_unused]] const std::shared_ptr<T>& p) {
#if defined(__SANITIZE_THREAD__)  // which knows no fences
  const std::shared_ptr<T> one_more = p;
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

}  // namespace shardarray

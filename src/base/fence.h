// A full fence right after an atomic read-modify-write.
#pragma once
#include <atomic>
#include <memory>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SHARDARRAY_CLANG_TSAN 1
#endif
#endif

namespace shardarray {

/// On x86 the read-modify-write already is a full fence.
inline void fence_after_rmw() {
#if defined(__x86_64__)
  std::atomic_signal_fence(std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// After use_count() showed that other owners are gone: acquires what they wrote before they released their shares.
template <class T> void see_past_owners([[maybe_unused]] const std::shared_ptr<T>& p) {
#if defined(__SANITIZE_THREAD__) || defined(SHARDARRAY_CLANG_TSAN)  // these do not model fences
  const std::shared_ptr<T> one_more = p;
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

}  // namespace shardarray

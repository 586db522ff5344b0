// The amount of work of tests with random or sampled inputs.
#pragma once
#include <cstdlib>
#include <string>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace shardarray::testing {

/// `./dev check` asks for everything by SHARDARRAY_TEST_SCALE=full.
inline bool full_scale() {
  const char* scale = std::getenv("SHARDARRAY_TEST_SCALE");
  return scale && std::string(scale) == "full";
}

/// Sanitizers make everything 20 to 50 times slower.
constexpr bool is_sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
  return __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
  return false;
#endif
}

/// Of many similar cases sanitizers run every n-th, and runs below full scale every m-th: `if (left_out()) continue;`.
class LeftOut {
 public:
  explicit LeftOut(int every, int by_default = 1)
      : every_(is_sanitized() ? every
               : full_scale() ? 1
                              : by_default) {}
  bool operator()() { return count_++ % every_ != 0; }

 private:
  int every_, count_ = 0;
};

/// In its scope LeakSanitizer does not count what this thread allocates.
class LostMemory {
 public:
#if defined(__SANITIZE_ADDRESS__)
  LostMemory() { __lsan_disable(); }
  ~LostMemory() { __lsan_enable(); }
#else
  LostMemory() {}
#endif
  LostMemory(const LostMemory&) = delete;
  LostMemory& operator=(const LostMemory&) = delete;
};

}  // namespace shardarray::testing

// How much the tests with random or sampled inputs do.
#pragma once
#include <cstdlib>
#include <string>

namespace shardarray::testing {

/// `./dev check` asks for everything by SHARDARRAY_TEST_SCALE=full.
inline bool full_scale() {
  const char* scale = std::getenv("SHARDARRAY_TEST_SCALE");
  return scale && std::string(scale) == "full";
}

/// Sanitizers look at memory and threads, and are 20 times slower: a part of the inputs does.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace shardarray::testing

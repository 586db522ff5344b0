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

}  // namespace shardarray::testing

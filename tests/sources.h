// Where the project's sources are: the folder that was built, or another one, where its tests were taken along.
#pragma once
#include <cstdlib>
#include <string>

namespace shardarray::testing {

inline std::string source_folder() {
  const char* elsewhere = std::getenv("SHARDARRAY_TEST_SOURCES");
  return elsewhere ? elsewhere : SHARDARRAY_SOURCE_DIR;
}
inline std::string data_file(const std::string& name) { return source_folder() + "/tests/data/" + name; }

}  // namespace shardarray::testing

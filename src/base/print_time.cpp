#include "base/print_time.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace shardarray {

bool prints_times() {
  static const bool on = [] {
    const char* text = std::getenv("SHARDARRAY_DEBUG");
    return text != nullptr && std::strcmp(text, "time") == 0;
  }();
  return on;
}

void PrintTime::print() const {
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start_;
  fmt::print(stderr, "shardarray: {:<12} {:>9.1f} us\n", what_, took.count());
}

}  // namespace shardarray

#include "base/print_time.h"

#include <fmt/core.h>

#include <cstdio>

#include "base/env.h"

namespace shardarray {

bool prints_times() {
  static const bool on = debug_is("time");
  return on;
}

void PrintTime::print() const {
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start_;
  fmt::print(stderr, "shardarray: {:<12} {:>9.1f} us\n", what_, took.count());
}

}  // namespace shardarray

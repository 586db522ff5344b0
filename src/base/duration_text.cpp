#include "base/duration_text.h"

#include <fmt/format.h>

#include <utility>

namespace shardarray {

std::string duration_text(double seconds) {
  const auto [factor, unit] = seconds < 1e-6   ? std::pair(1e9, "ns")
                              : seconds < 1e-3 ? std::pair(1e6, "us")
                              : seconds < 1    ? std::pair(1e3, "ms")
                                               : std::pair(1.0, "s");
  return fmt::format("{:.3g} {}", seconds * factor, unit);
}

}  // namespace shardarray

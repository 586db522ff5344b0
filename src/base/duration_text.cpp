#include "base/duration_text.h"

#include <fmt/format.h>

#include <utility>

namespace shardarray {

std::string duration_text(double seconds) {
  constexpr double rounds_up = 0.9995;  // prints as 1000 of the smaller unit
  const auto [factor, unit] = seconds < rounds_up * 1e-6   ? std::pair(1e9, "ns")
                              : seconds < rounds_up * 1e-3 ? std::pair(1e6, "us")
                              : seconds < rounds_up        ? std::pair(1e3, "ms")
                                                           : std::pair(1.0, "s");
  if (seconds >= 999.5 && seconds < 1e15) return fmt::format("{:.0f} s", seconds);
  return fmt::format("{:.3g} {}", seconds * factor, unit);
}

}  // namespace shardarray

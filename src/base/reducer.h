// Reductions. Between devices `any` is the bitwise or, for every dtype.
#pragma once
#include <cstdint>

namespace shardarray {

// g++ 12 warns that scoped enumerators shadow globals of the same name.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class Reducer : std::uint8_t { none, sum, max, min, prod, any, all };
#pragma GCC diagnostic pop
constexpr const char* name(Reducer r) {
  constexpr const char* names[] = {"none", "sum", "max", "min", "prod", "any", "all"};
  return names[static_cast<int>(r)];
}

}  // namespace shardarray

// The ways in which several values become one. Between devices `any` is the or of the bits, of every dtype.
#pragma once
#include <cstdint>

namespace shardarray {

// g++ 12 takes scoped enumerators for shadows of globals of the same name.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
enum class Reducer : std::uint8_t { none, sum, max, min, prod, any, all };
#pragma GCC diagnostic pop
constexpr const char* name(Reducer r) {
  constexpr const char* names[] = {"none", "sum", "max", "min", "prod", "any", "all"};
  return names[static_cast<int>(r)];
}

}  // namespace shardarray

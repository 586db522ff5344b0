// Mixing 64-bit words into a hash.
#pragma once
#include <cstdint>

namespace shardarray {

constexpr std::uint64_t hash_mix(std::uint64_t h, std::uint64_t x) {
  h ^= x + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 32);
}

}  // namespace shardarray

// The memory that work touches: what must not run at the same time is seen by it.
#pragma once
#include <cstdint>

namespace shardarray {

/// The bytes [lo, hi) behind a base pointer.
struct MemoryRange {
  std::uint32_t base;
  std::uint64_t lo, hi;
};
inline bool overlap(const MemoryRange& a, const MemoryRange& b) {
  return a.base == b.base && a.lo < b.hi && b.lo < a.hi;
}

/// Whether all of b is in a.
inline bool covers(const MemoryRange& a, const MemoryRange& b) {
  return a.base == b.base && a.lo <= b.lo && b.hi <= a.hi;
}

}  // namespace shardarray

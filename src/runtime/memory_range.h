// The memory that work touches, by which conflicts are found.
#pragma once
#include <cstdint>

namespace shardarray {

/// The bytes [lo, hi) relative to a base pointer.
struct MemoryRange {
  std::uint32_t base;
  std::uint64_t lo, hi;
};
inline bool overlap(const MemoryRange& a, const MemoryRange& b) {
  return a.base == b.base && a.lo < b.hi && b.lo < a.hi;
}

/// Whether a contains b.
inline bool covers(const MemoryRange& a, const MemoryRange& b) {
  return a.base == b.base && a.lo <= b.lo && b.hi <= a.hi;
}

}  // namespace shardarray

// Where arenas get their blocks from: one source for each kind of memory.
#pragma once
#include <cstddef>

namespace shardarray {

inline constexpr std::size_t huge_page = std::size_t{1} << 21;  // 2 MiB

/// Thread-safe.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// A block, 2 MiB aligned when `bytes` is a multiple of 2 MiB; null when there is no more.
  virtual void* map(std::size_t bytes) = 0;
  virtual void unmap(void* p, std::size_t bytes) = 0;
  /// Every byte from p on becomes `byte`. The block may be no memory of the host.
  virtual void fill(void* p, unsigned char byte, std::size_t bytes) = 0;
};

/// Pages of the operating system.
MemorySource& system_memory();
/// Puts `m` in its place, so that tests can refuse memory; returns the one before. A block is unmapped by the one that is set at
/// that time.
MemorySource& set_system_memory(MemorySource& m);

}  // namespace shardarray

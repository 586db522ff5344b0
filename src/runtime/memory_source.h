// Where arenas get their blocks: one source per kind of memory.
#pragma once
#include <cstddef>

namespace shardarray {

inline constexpr std::size_t huge_page = std::size_t{1} << 21;  // 2 MiB

/// Thread-safe.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  /// A block, 2 MiB aligned if `bytes` is a multiple of 2 MiB; null if there is no memory.
  virtual void* map(std::size_t bytes) = 0;
  virtual void unmap(void* p, std::size_t bytes) = 0;
  /// Sets `bytes` bytes from p on. The block may not be host-accessible.
  virtual void fill(void* p, unsigned char byte, std::size_t bytes) = 0;
};

/// Pages of the operating system.
MemorySource& system_memory();
/// Replaces it, so that tests can refuse memory; returns the previous one. Blocks are unmapped by the source set at that time.
MemorySource& set_system_memory(MemorySource& m);

}  // namespace shardarray

// Seam between arenas and the operating system, so that tests can refuse memory.
#pragma once
#include <cstddef>

namespace shardarray {

inline constexpr std::size_t huge_page = std::size_t{1} << 21;  // 2 MiB

struct SystemMemory {
  /// Zeroed pages, 2 MiB aligned when `bytes` is a multiple of 2 MiB; null when the system refuses.
  void* (*map)(std::size_t bytes);
  void (*unmap)(void* p, std::size_t bytes);
};
SystemMemory system_memory();
/// Returns the one before. Blocks mapped by one are unmapped by the one that is set at that time.
SystemMemory set_system_memory(SystemMemory m);

}  // namespace shardarray

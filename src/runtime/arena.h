// Arena: the memory of one device. It reuses freed blocks: a fresh 64 MB output costs five times a reused one.
//
// Blocks up to 1.5 MiB come in size classes (64, 128, 192, 256, 384, 512, ... bytes: powers of two and 1.5 times those), larger ones in
// multiples of 2 MiB. Blocks above 64 KiB are mapped individually, smaller ones are carved from slabs of 1 MiB. If memory runs out, free
// blocks and unused slabs are returned to their source. Thread-safe.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/backend.h"
#include "runtime/buffer.h"
#include "runtime/memory_source.h"

namespace shardarray {

/// How much a device may take from the system.
struct MemoryLimit {
  std::size_t bytes = SIZE_MAX;
  const char* variable = "";  ///< the environment variable that sets it
};

class Arena {
 public:
  /// `owner` and `device` are stored in the buffers. `source` null: the system's memory, as currently set.
  Arena(Backend* owner, int device, MemorySource* source = nullptr, MemoryLimit limit = {})
      : owner_(owner), device_(device), source_(source), limit_(limit) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  /// Unmaps everything; no buffer may be alive.
  ~Arena();

  /// One reference; 64-byte aligned (2 MiB above 1.5 MiB). A reused block costs no malloc. Throws OutOfMemory if the system or the limit
  /// refuses; nothing leaks then.
  Buffer* allocate(std::size_t bytes);
  /// Takes back a buffer without references.
  void deallocate(Buffer* b) noexcept;
  /// Returns free memory to its source.
  void trim() noexcept;
  MemoryStats stats() const;

 private:
  struct Class {
    std::size_t blocks = 0;     // in use and free
    std::vector<Buffer*> free;  // capacity >= blocks, so that freeing never allocates
  };
  Class& class_of(std::size_t block);
  void* fresh_block(std::size_t block);
  void* map(std::size_t bytes);
  bool within_limit(std::size_t bytes) const { return bytes <= limit_.bytes - stats_.held; }
  MemorySource& source() const { return source_ != nullptr ? *source_ : system_memory(); }
  void trim_locked() noexcept;
  void trim_class(Class& c, std::size_t block) noexcept;
  void trim_slabs() noexcept;
  [[noreturn]] void refuse(std::size_t bytes) const;

  Backend* const owner_;
  const int device_;
  MemorySource* const source_;
  const MemoryLimit limit_;
  mutable std::mutex mutex_;
  std::array<Class, 32> small_;
  std::map<std::size_t, Class> large_;  // block size -> blocks
  struct Slab {
    char* data = nullptr;
    std::size_t cut = 0;   // bytes carved so far, from the front
    std::size_t free = 0;  // bytes, counted in trim_slabs()
  };
  std::vector<Slab> slabs_;  // small blocks are carved from the last one
  MemoryStats stats_;
};

/// Fills every block with 0xff bytes (NaN as floats, -1 as integers) when it is handed out, fresh or reused, so that reads of uninitialized
/// memory show. Initially set by SHARDARRAY_DEBUG_FILL=1. Returns the previous setting.
bool set_debug_fill(bool on);

}  // namespace shardarray

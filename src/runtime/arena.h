// Arena: the memory of one device. It keeps the blocks that come back: a fresh 64 MB output costs five times
// a reused one.
//
// Blocks up to 1.5 MiB come in classes (64, 128, 192, 256, 384, 512, ... bytes: powers of two and 1.5 times
// those), larger ones in multiples of 2 MiB. Those above 64 KiB are each mapped on their own, smaller ones are cut from slabs of
// 1 MiB. Where memory runs out, free blocks and slabs without a used block go back to where they come from. Thread-safe.
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

/// What a device may take from the system.
struct MemoryLimit {
  std::size_t bytes = SIZE_MAX;
  const char* variable = "";  ///< of the environment, by which users set it
};

class Arena {
 public:
  /// `owner` and `device` go into the buffers. Null: the memory of the system, whichever is set.
  Arena(Backend* owner, int device, MemorySource* source = nullptr, MemoryLimit limit = {})
      : owner_(owner), device_(device), source_(source), limit_(limit) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  /// Unmaps everything; no buffer may be alive.
  ~Arena();

  /// One count, 64-byte aligned (2 MiB from more than 1.5 MiB up). A recycled block costs no malloc.
  /// Throws OutOfMemory when the system refuses, or the limit; nothing is lost then.
  Buffer* allocate(std::size_t bytes);
  /// Takes back a buffer whose count is zero.
  void deallocate(Buffer* b) noexcept;
  /// Gives what is free back to where it comes from.
  void trim() noexcept;
  MemoryStats stats() const;

 private:
  struct Class {
    std::size_t blocks = 0;     // alive and free
    std::vector<Buffer*> free;  // capacity >= blocks, so that giving back never allocates
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
  std::map<std::size_t, Class> large_;  // block bytes -> blocks
  struct Slab {
    char* data = nullptr;
    std::size_t cut = 0;   // bytes, from the front on
    std::size_t free = 0;  // bytes, where trim_slabs() counts them
  };
  std::vector<Slab> slabs_;  // what small blocks are cut from: the last
  MemoryStats stats_;
};

/// Fills every block with 0xff bytes (NaN as floats, -1 as integers) when it is handed out, fresh or
/// recycled: reads of memory that nobody wrote show. Initially what SHARDARRAY_DEBUG_FILL=1 says. Returns the
/// setting before.
bool set_debug_fill(bool on);

}  // namespace shardarray

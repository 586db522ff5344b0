// Backend: what a platform implements. Plug-ins and fault tests provide it; floors above see nothing else of a platform.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/program.h"

namespace shardarray {

struct MemoryStats {
  std::size_t in_use = 0;      ///< bytes of live buffers and scratch
  std::size_t high_water = 0;  ///< the most that `in_use` has been
  std::size_t held = 0;        ///< bytes taken from the system and kept
};

/// What a run tells its caller.
struct RunReport {
  std::vector<std::int64_t>
      received;  ///< transfer -> bytes that the executor moved for it (equals Transfer::moved_bytes)
};

/// A program made ready for a backend.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Runs all steps; `bases` has Program::base_count pointers, scratch included. Returns when done. Rethrows the first
  /// exception of a step after the others have stopped. May be called from several threads at once with different bases.
  virtual void run(std::span<void* const> bases, RunReport* report) const = 0;
  /// The program will run often: what makes it faster may be done sooner. May be called again, from any thread.
  virtual void prepare() const {}
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* platform() const = 0;
  virtual int device_count() const = 0;
  /// 64-byte aligned (2 MiB and huge pages from 2 MiB up); contents undefined. Throws OutOfMemory naming the bytes.
  virtual BufferRef allocate(int device, std::size_t bytes) = 0;
  virtual void deallocate(Buffer* b) = 0;
  virtual void copy_from_host(const BufferRef& to, const void* from, std::size_t bytes) = 0;
  virtual void copy_to_host(void* to, const BufferRef& from, std::size_t bytes) = 0;
  virtual std::unique_ptr<Executable> load(std::shared_ptr<const Program> program) = 0;
  virtual MemoryStats memory_stats(int device) const = 0;
};

/// The backend of a platform. Throws DeviceError for an unknown one. "cpu" exists always.
Backend& backend(const std::string& platform);
/// Puts `b` in the place of a platform's backend and returns the one before (tests: faults).
Backend* set_backend(const std::string& platform, Backend* b);

}  // namespace shardarray

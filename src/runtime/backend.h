// Backend: what a platform implements. Provided by plug-ins and fault tests; layers above see nothing else of a platform.
//
// Calls are asynchronous. Requests to one device are executed in order, so memory may be freed and reused while earlier work still uses it.
// After a failure all later requests to these devices fail. Host code accesses a buffer's memory only through its backend, or where that
// allows it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/buffer.h"
#include "runtime/completion.h"
#include "runtime/program.h"
#include "runtime/target.h"
#include "shardarray/device.h"

namespace shardarray {

struct LocalPart;

struct MemoryStats {
  std::size_t in_use = 0;  ///< bytes of live buffers and scratch; includes a few literals that threads keep
  std::size_t high_water = 0;  ///< maximum of `in_use`
  std::size_t held = 0;        ///< bytes taken from the system
};

/// Results of a run for its caller.
struct RunReport {
  std::vector<std::int64_t>
      received;  ///< per transfer, the bytes that the executor moved (equals Transfer::moved_bytes)
};

/// A program loaded by a backend. It may be destroyed while its runs are unfinished.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Enqueues all steps. `bases` has Program::base_count pointers, including scratch, and may be freed after the call; `report` must live
  /// until the work is done. The first exception of a step is thrown here or by the completion, after the other steps have stopped.
  /// Thread-safe for different bases. `numbers`: a hash of the literal inputs, equal in all processes that share the run.
  virtual CompletionRef run(std::span<void* const> bases, RunReport* report,
                            std::uint64_t numbers = 0) const = 0;
  /// Hint that the program will run often, so optimization may start earlier. Idempotent and thread-safe.
  virtual void prepare() const {}
};

/// A backend's devices are those of this process, numbered from 0 (local_index() in devices.h). All calls are thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* platform() const = 0;
  virtual int device_count() const = 0;
  /// As users see it. By default all devices are in one memory.
  virtual Device device(int local) const;
  /// All devices of the platform, ordered by id, including those of other processes.
  virtual std::vector<Device> devices() const;
  /// The compilation target; constant.
  virtual const Target& target() const = 0;
  /// 64-byte aligned (2 MiB and huge pages from 2 MiB up); uninitialized. Throws OutOfMemory naming the bytes.
  virtual BufferRef allocate(int device, std::size_t bytes) = 0;
  /// The tiles of one value: bytes[k] on devices[k] into to[k]. A backend may carve adjacent ones from one block. If it throws, nothing
  /// leaks.
  virtual void allocate(std::span<const int> devices, std::span<const std::uint64_t> bytes,
                        std::span<BufferRef> to);
  virtual void deallocate(Buffer* b) = 0;
  /// Returns once the host memory may be overwritten.
  virtual void copy_from_host(const BufferRef& to, const void* from, std::size_t bytes) = 0;
  /// Blocks until the bytes have arrived.
  virtual void copy_to_host(void* to, const BufferRef& from, std::size_t bytes) = 0;
  /// The buffer's bytes if the host may access them directly at any time; empty if they have to be copied.
  virtual std::span<std::byte> host_memory(const BufferRef&) { return {}; }
  /// `to` belongs to this backend, `from` to any. Goes through host memory, unless a backend does better.
  virtual void copy(const BufferRef& to, const BufferRef& from, std::size_t bytes);
  virtual std::unique_ptr<Executable> load(std::shared_ptr<const Program> program) = 0;
  /// The same for this process's part of a program over several. `bases` of its runs are null for what other processes hold. Throws
  /// CompileError if the backend cannot reach other processes.
  virtual std::unique_ptr<Executable> load_part(std::shared_ptr<const LocalPart> part);
  virtual MemoryStats memory_stats(int device) const = 0;
  /// Held by whoever evaluates a value that spans processes, from reading the graph until it has values: all processes run the same
  /// programs in the same order, and what two threads request runs once.
  std::recursive_mutex& shared_runs() { return shared_runs_; }

 private:
  std::recursive_mutex shared_runs_;
};

}  // namespace shardarray

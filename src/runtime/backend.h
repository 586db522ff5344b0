// Backend: what a platform implements. Plug-ins and fault tests provide it; floors above see nothing else of a platform.
//
// Work may go on after the call that asked for it. What is asked of one device is done in the order of asking, so memory may be
// given back, and handed out again, while earlier work still uses it. Work that fails fails all that is asked of its devices
// afterwards. Host code never touches a buffer's memory but by its backend, or where that says that it may.
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
  std::size_t in_use = 0;      ///< bytes of live buffers and scratch; threads keep a few numbers
  std::size_t high_water = 0;  ///< the most that `in_use` has been
  std::size_t held = 0;        ///< bytes taken from the system and kept
};

/// What a run tells its caller.
struct RunReport {
  std::vector<std::int64_t>
      received;  ///< transfer -> bytes that the executor moved for it (equals Transfer::moved_bytes)
};

/// A program made ready for a backend. It may go while work that it was asked for is not done.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Asks for all steps; `bases` has Program::base_count pointers, scratch included, and may go after the call. `report` must
  /// live until the work is done. Throws, or the completion does, the first exception of a step, after the others have stopped.
  /// May be called from several threads at once with different bases. `numbers`: a hash of those that enter, of which processes that
  /// share the run have the same.
  virtual CompletionRef run(std::span<void* const> bases, RunReport* report,
                            std::uint64_t numbers = 0) const = 0;
  /// The program will run often: what makes it faster may be done sooner. May be called again, from any thread.
  virtual void prepare() const {}
};

/// The devices of a backend are those that this process has, numbered from 0 (local_index() in devices.h). All calls are
/// thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* platform() const = 0;
  virtual int device_count() const = 0;
  /// What users see of it. All in one memory, unless a backend says otherwise.
  virtual Device device(int local) const;
  /// All devices of the platform, in order of id: those of other processes too, if they have some.
  virtual std::vector<Device> devices() const;
  /// What programs for it are compiled for; always the same.
  virtual const Target& target() const = 0;
  /// 64-byte aligned (2 MiB and huge pages from 2 MiB up); contents undefined. Throws OutOfMemory naming the bytes.
  virtual BufferRef allocate(int device, std::size_t bytes) = 0;
  /// The tiles of one value: bytes[k] on devices[k] into to[k]. A backend may cut neighbours from one block. Where it throws,
  /// nothing is lost.
  virtual void allocate(std::span<const int> devices, std::span<const std::uint64_t> bytes,
                        std::span<BufferRef> to);
  virtual void deallocate(Buffer* b) = 0;
  /// The host's memory may be written again when this returns.
  virtual void copy_from_host(const BufferRef& to, const void* from, std::size_t bytes) = 0;
  /// Returns with the bytes.
  virtual void copy_to_host(void* to, const BufferRef& from, std::size_t bytes) = 0;
  /// The buffer's bytes where the host may read and write them itself, at any time; empty: they are copied.
  virtual std::span<std::byte> host_memory(const BufferRef&) { return {}; }
  /// `to` is this backend's; `from` is any backend's. By way of the host's memory, unless a backend knows better.
  virtual void copy(const BufferRef& to, const BufferRef& from, std::size_t bytes);
  virtual std::unique_ptr<Executable> load(std::shared_ptr<const Program> program) = 0;
  /// The same for this process' part of a program with others. `bases` of its runs are null where other processes have them.
  /// Throws CompileError unless the backend has a way to other processes.
  virtual std::unique_ptr<Executable> load_part(std::shared_ptr<const LocalPart> part);
  virtual MemoryStats memory_stats(int device) const = 0;
  /// Who evaluates what lies in several processes holds it from reading the graph until that has its values: every process runs the
  /// same programs in the same order, and what two threads ask for runs once.
  std::recursive_mutex& shared_runs() { return shared_runs_; }

 private:
  std::recursive_mutex shared_runs_;
};

}  // namespace shardarray

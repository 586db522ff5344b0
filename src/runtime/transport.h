// Transport: moves boxes between processes. Within a process a backend moves them itself (Exchange).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/late_work.h"
#include "shardarray/where.h"

namespace shardarray {

struct Fingerprint;

/// A contiguous box sent to or received from another process.
struct Parcel {
  int peer = 0;           ///< the other process
  std::uint64_t tag = 0;  ///< unique within its run; the same on both sides
  void* memory = nullptr;
  std::size_t bytes = 0;
  int device = -1;              ///< Device::id of the local sender or receiver, for messages; -1: unknown
  std::string_view label = {};  ///< of its step
  Where where = {};
};

/// The parcels of one run of a program. No call waits for a peer; all are thread-safe. Every request eventually ends, with a TransportError
/// if the peer fails, runs another program or is silent too long.
class TransportRun {
 public:
  /// All requests must have ended.
  virtual ~TransportRun() = default;
  /// Sends. The memory may be overwritten once it has ended.
  virtual void post(const Parcel& parcel, LateEnd ended) = 0;
  /// Receives. The memory is valid once it has ended.
  virtual void complete(const Parcel& parcel, LateEnd ended) = 0;
  /// Makes progress, unless another thread is doing so; called by waiting threads.
  virtual void advance() noexcept {}
  /// Throws the run's failure, if any; for threads that wait for something else.
  virtual void look() {}
  /// The run failed in this process: tells its peers why; all current and later requests end soon.
  virtual void fail(const std::exception_ptr& why) noexcept = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// Processes must begin shared runs in the same order. `fingerprint` is that of the program, `numbers` a hash of its literal inputs; a
  /// mismatch with a peer fails the run. May throw TransportError.
  virtual std::unique_ptr<TransportRun> begin(std::span<const int> peers,
                                              std::shared_ptr<const Fingerprint> fingerprint,
                                              std::uint64_t numbers) = 0;
};

}  // namespace shardarray

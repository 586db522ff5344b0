// Transport: how boxes come to other processes and from there. Within a process a backend moves them itself (Exchange).
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

/// One box on its way between this process and another one: bytes in a row.
struct Parcel {
  int peer = 0;           ///< the other process
  std::uint64_t tag = 0;  ///< within its run; both sides give the same
  void* memory = nullptr;
  std::size_t bytes = 0;
  int device = -1;  ///< Device::id of the one here that sends it or wants it, for messages; -1: not said
  std::string_view label = {};  ///< of its step
  Where where = {};
};

/// The parcels of one run of a program. No call waits for a peer; all may come from any thread, several at once.
/// Whatever was asked for ends at last, with a TransportError where the peer fails, runs another program or stays silent too long.
class TransportRun {
 public:
  /// What was asked for has ended.
  virtual ~TransportRun() = default;
  /// Sends. When it has ended the memory may be written again.
  virtual void post(const Parcel& parcel, LateEnd ended) = 0;
  /// Receives. When it has ended the memory is written.
  virtual void complete(const Parcel& parcel, LateEnd ended) = 0;
  /// Moves on what is on its way, unless another thread does just now: of a thread that waits for it.
  virtual void advance() noexcept {}
  /// Throws what the run has failed with: of who waits for something else.
  virtual void look() {}
  /// The run failed in this process: its peers hear why, and all that is asked for, now and later, ends soon.
  virtual void fail(const std::exception_ptr& why) noexcept = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// Processes begin the runs that they share in the same order. `fingerprint` is that of the program, `numbers` a hash of those that
  /// enter: one that differs from a peer's fails the run. May throw TransportError.
  virtual std::unique_ptr<TransportRun> begin(std::span<const int> peers,
                                              std::shared_ptr<const Fingerprint> fingerprint,
                                              std::uint64_t numbers) = 0;
};

}  // namespace shardarray

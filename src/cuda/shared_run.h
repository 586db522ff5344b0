// One run of a program over several processes: its requests to the transport, and whether the others are still there.
#pragma once
#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <span>

#include "cuda/communicator.h"
#include "runtime/local_part.h"
#include "runtime/transport.h"

namespace shardarray::cuda {

class CudaBackend;
struct BetweenProcesses;

/// Requests to a transport, until they have ended. Must not be destroyed before.
class Ends final : public LateRun {
 public:
  void end_late(int task, std::exception_ptr failure) override;
  /// ask(LateEnd) makes one request.
  template <class Ask> void add(const Ask& ask) {
    open_++;
    try {
      ask(LateEnd{this, 0});
    } catch (...) {
      open_--;
      throw;
    }
  }
  bool have_ended() const { return open_.load(std::memory_order_acquire) == 0; }
  /// Throws if a request has failed.
  void look() const;

 private:
  std::atomic<int> open_{0};
  std::atomic<bool> has_failure_{false}, has_failed_{false};
  std::exception_ptr failure_;  // written before has_failed_
};

class SharedRun final : public Watched {
 public:
  /// Begins the run. `caller`: the run of the calling program, with the same processes; it decides about NCCL. Throws TransportError.
  SharedRun(CudaBackend& backend, const LocalPart& part, std::uint64_t numbers, SharedRun* caller);
  SharedRun(const SharedRun&) = delete;
  SharedRun& operator=(const SharedRun&) = delete;
  TransportRun& transport() { return *run_; }
  /// Null: boxes go through host memory.
  const BetweenProcesses* nccl() const { return nccl_; }
  /// The id that `peer` has made, or, without one, this process: all processes call it.
  Nccl::Id same_id(std::optional<int> peer);
  /// Throws if another process has failed.
  void look() override;
  void wait(const Ends& ends);
  /// Everything is enqueued; with NCCL it returns when it is done on this side.
  void finish(std::span<Turn* const> turns);
  /// The run has failed here: tells the others why, and aborts NCCL's work in flight.
  void fail(const std::exception_ptr& why) noexcept;

 private:
  const LocalPart& part_;
  std::unique_ptr<TransportRun> run_;
  const BetweenProcesses* nccl_ = nullptr;
};

}  // namespace shardarray::cuda

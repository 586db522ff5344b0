// One run of a program that other processes have a part in: what is asked of the way to them, and whether they are still there.
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

/// What has been asked of a transport, until it has ended. Nothing may be under way when it goes.
class Ends final : public LateRun {
 public:
  void end_late(int task, std::exception_ptr failure) override;
  /// ask(LateEnd) asks for one thing.
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
  /// Throws what something has failed with.
  void look() const;

 private:
  std::atomic<int> open_{0};
  std::atomic<bool> has_failure_{false}, has_failed_{false};
  std::exception_ptr failure_;  // written before has_failed_
};

class SharedRun final : public Watched {
 public:
  /// Begins it. `caller`: the run of the program that calls it, with the same others; it has what is said of NCCL here. Throws
  /// TransportError.
  SharedRun(CudaBackend& backend, const LocalPart& part, std::uint64_t numbers, SharedRun* caller);
  SharedRun(const SharedRun&) = delete;
  SharedRun& operator=(const SharedRun&) = delete;
  TransportRun& transport() { return *run_; }
  /// Null: boxes go by way of the host's memory.
  const BetweenProcesses* nccl() const { return nccl_; }
  /// What the same peer, or this process, has made: all ask.
  Nccl::Id same_id(std::optional<int> peer);
  /// Throws what another process has failed with.
  void look() override;
  void wait(const Ends& ends);
  /// All is asked for: by NCCL it returns when it is done here.
  void finish(std::span<Turn* const> turns);
  /// It has failed here: the others hear why, and what NCCL has under way is given up.
  void fail(const std::exception_ptr& why) noexcept;

 private:
  const LocalPart& part_;
  std::unique_ptr<TransportRun> run_;
  const BetweenProcesses* nccl_ = nullptr;
};

}  // namespace shardarray::cuda

// NCCL between GPUs of this process, or of several processes; each GPU is one rank.
//
// All NCCL calls are made under one lock, those of a step in one group, so every GPU gets them in the same order. A step is in flight until
// a thread that waits for a GPU finds that it is done, has failed, or has timed out; then all communicators are aborted, and their GPUs are
// lost.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/libraries.h"

namespace shardarray::cuda {

class Gpu;
class Turn;

/// Other processes, which a thread waiting for NCCL also waits for.
class Watched {
 public:
  /// Throws if they will not come.
  virtual void look() = 0;

 protected:
  ~Watched() = default;
};

class Communicator {
 public:
  /// For these GPUs, each once, by ascending number; created at the first call and never destroyed. Throws CompileError without NCCL,
  /// DeviceError if NCCL fails.
  static Communicator& of(const std::vector<Gpu*>& gpus);
  /// GPUs of several processes, each once and in the same order everywhere; some belong to this process.
  struct Members {
    std::vector<std::string> uuids;  ///< rank -> UUID of its GPU
    std::vector<Gpu*> gpus;          ///< this process's
    std::vector<int> ranks;          ///< their ranks
  };
  /// The same for `members`: all processes call it, with the id that rank 0's process got from new_nccl_id(). Null `id`: null if not
  /// created yet.
  static Communicator* of(const Members& members, const Nccl::Id* id, Watched& others);
  const std::vector<Gpu*>& gpus() const { return gpus_; }

 private:
  friend class Collectives;
  friend bool is_under_way(const Communicator& c);
  Communicator(std::vector<Gpu*> gpus, std::vector<int> numbers, int count)
      : gpus_(std::move(gpus)), numbers_(std::move(numbers)), count_(count), ranks_(gpus_.size(), nullptr) {}
  const std::vector<Gpu*> gpus_;    // of this process
  const std::vector<int> numbers_;  // their ranks
  const int count_;                 // of all ranks
  std::vector<Nccl::Rank> ranks_;   // by GPU; null after an abort
  int under_way_ = 0;               // steps in flight
};

/// A call on one rank of a communicator.
struct NcclCall {
  enum class Kind : std::uint8_t { send, receive, all_reduce, all_gather, reduce_scatter };
  Kind kind = Kind::send;
  Communicator* of = nullptr;
  std::size_t rank = 0;  ///< index among its GPUs in this process
  Turn* turn = nullptr;  ///< of the rank's GPU
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;  ///< elements sent by this rank; received by it in a reduce-scatter
  int type = 0;
  int with = 0;  ///< the peer's rank, or the reduction
};
/// Launches the calls of a step; its name is for messages. On DeviceError the GPUs are lost; likewise if `others`, who take part in it,
/// will not come.
void ask_nccl(const std::vector<NcclCall>& calls, const std::string& step, Watched* others = nullptr);
/// Whether a step of it may still be in flight.
bool is_under_way(const Communicator& c);
/// Nothing in flight will end: aborts all communicators; their GPUs are lost.
void give_up_nccl(const std::string& why);
Nccl::Id new_nccl_id();

/// Held during NCCL calls.
std::mutex& nccl_mutex();
/// Whether any step may still be in flight.
bool collectives_under_way();
/// Polls the steps in flight; from any thread, as often as desired.
void look_after_collectives();

/// A backoff for polling loops.
class Pause {
 public:
  void operator()();

 private:
  int times_ = 0;
};

/// `GPU 3`, `GPUs 0, 1`.
std::string names_of(const std::vector<Gpu*>& gpus);

}  // namespace shardarray::cuda

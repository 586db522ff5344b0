// NCCL between the GPUs of this process, each one rank.
//
// All calls of the library happen under one lock, those of a step in one group: every GPU gets them in the same order. What is asked
// for is under way until somebody who waits for a GPU sees that it is done, has failed, or does not end: then all communicators are
// given up, and their GPUs are lost.
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

class Communicator {
 public:
  /// Of these GPUs, by ascending numbers, each once: made at the first call, and kept for good. Throws CompileError where there is no
  /// NCCL, DeviceError where it cannot.
  static Communicator& of(const std::vector<Gpu*>& gpus);
  const std::vector<Gpu*>& gpus() const { return gpus_; }

 private:
  friend class Collectives;
  explicit Communicator(std::vector<Gpu*> gpus) : gpus_(std::move(gpus)), ranks_(gpus_.size(), nullptr) {}
  const std::vector<Gpu*> gpus_;
  std::vector<Nccl::Rank> ranks_;  // of the GPUs; null once it was given up
  int under_way_ = 0;              // steps
};

/// A call for one rank of a communicator.
struct NcclCall {
  enum class Kind : std::uint8_t { send, receive, all_reduce, all_gather, reduce_scatter };
  Kind kind = Kind::send;
  Communicator* of = nullptr;
  std::size_t rank = 0;
  Turn* turn = nullptr;  ///< of the rank's GPU
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;  ///< elements: sent by this rank, or received where a reduction is scattered
  int type = 0;
  int with = 0;  ///< the other rank, or the reduction
};
/// Asks for the calls of a step, whose name is for messages. Throws DeviceError, and the GPUs are lost.
void ask_nccl(const std::vector<NcclCall>& calls, const std::string& step);

/// Held while the library is called.
std::mutex& nccl_mutex();
/// Whether something that was asked for may not be done yet.
bool collectives_under_way();
/// Sees how far they are; from any thread, as often as one likes.
void look_after_collectives();

/// What who asks again and again does in between.
class Pause {
 public:
  void operator()();

 private:
  int times_ = 0;
};

/// `GPU 3`, `GPUs 0, 1`.
std::string names_of(const std::vector<Gpu*>& gpus);

}  // namespace shardarray::cuda

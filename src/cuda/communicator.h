// NCCL between GPUs of this process, or of several, each one rank.
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

/// Others that whoever waits for NCCL waits for.
class Watched {
 public:
  /// Throws where they will not come.
  virtual void look() = 0;

 protected:
  ~Watched() = default;
};

class Communicator {
 public:
  /// Of these GPUs, by ascending numbers, each once: made at the first call, and kept for good. Throws CompileError where there is no
  /// NCCL, DeviceError where it cannot.
  static Communicator& of(const std::vector<Gpu*>& gpus);
  /// Of GPUs of several processes, each once and in the same order in all of them: this one has some.
  struct Members {
    std::vector<std::string> uuids;  ///< rank -> its GPU's
    std::vector<Gpu*> gpus;          ///< those here
    std::vector<int> ranks;          ///< theirs
  };
  /// The same of these: all processes ask, with what the first rank's got from new_nccl_id(). Null `id`: null where it is not made yet.
  static Communicator* of(const Members& members, const Nccl::Id* id, Watched& others);
  const std::vector<Gpu*>& gpus() const { return gpus_; }

 private:
  friend class Collectives;
  friend bool is_under_way(const Communicator& c);
  Communicator(std::vector<Gpu*> gpus, std::vector<int> numbers, int count)
      : gpus_(std::move(gpus)), numbers_(std::move(numbers)), count_(count), ranks_(gpus_.size(), nullptr) {}
  const std::vector<Gpu*> gpus_;    // here
  const std::vector<int> numbers_;  // of their ranks
  const int count_;                 // of all ranks
  std::vector<Nccl::Rank> ranks_;   // of the GPUs; null once it was given up
  int under_way_ = 0;               // steps
};

/// A call for one rank of a communicator.
struct NcclCall {
  enum class Kind : std::uint8_t { send, receive, all_reduce, all_gather, reduce_scatter };
  Kind kind = Kind::send;
  Communicator* of = nullptr;
  std::size_t rank = 0;  ///< of its GPUs here: which one
  Turn* turn = nullptr;  ///< of the rank's GPU
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;  ///< elements: sent by this rank, or received where a reduction is scattered
  int type = 0;
  int with = 0;  ///< the other rank, or the reduction
};
/// Asks for the calls of a step, whose name is for messages. Throws DeviceError, and the GPUs are lost; so where `others`, who have a
/// part in it, will not come.
void ask_nccl(const std::vector<NcclCall>& calls, const std::string& step, Watched* others = nullptr);
/// Whether something that it was asked for may not be done yet.
bool is_under_way(const Communicator& c);
/// Nothing that is under way will end: all communicators are given up, and their GPUs are lost.
void give_up_nccl(const std::string& why);
Nccl::Id new_nccl_id();

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

// Late work: tasks of a graph that a worker only starts, and that end when somebody outside reports it.
#pragma once
#include <cstdint>
#include <exception>
#include <utility>

namespace shardarray {

/// A run with late tasks.
class LateRun {
 public:
  virtual void end_late(int task, std::exception_ptr failure) = 0;

 protected:
  ~LateRun() = default;
};

/// Ends a late task: called once, from any thread, with the failure if any. The run may be destroyed afterwards.
struct LateEnd {
  LateRun* run = nullptr;
  int task = 0;
  void operator()(std::exception_ptr failure = nullptr) const { run->end_late(task, std::move(failure)); }
};

/// Executes the late tasks of one run.
class LateWork {
 public:
  /// Starts task `number` without blocking. `ended` is called once, possibly before this returns; never if this throws.
  virtual void start(std::int64_t number, LateEnd ended) = 0;
  /// Makes progress on started tasks, unless another thread is doing so: idle threads call it repeatedly.
  virtual void advance() noexcept {}
  /// Another task failed with `why`: everything started so far or later ends soon. Called at most once.
  virtual void stop(const std::exception_ptr& why) noexcept = 0;

 protected:
  ~LateWork() = default;
};

}  // namespace shardarray

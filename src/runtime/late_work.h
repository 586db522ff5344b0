// Late work: tasks of a graph that are only begun by who runs it, and end when somebody outside says so.
#pragma once
#include <cstdint>
#include <exception>
#include <utility>

namespace shardarray {

/// A run that has late tasks.
class LateRun {
 public:
  virtual void end_late(int task, std::exception_ptr failure) = 0;

 protected:
  ~LateRun() = default;
};

/// Ends a late task: to be called once, from any thread, with what it failed with. The run may be gone afterwards.
struct LateEnd {
  LateRun* run = nullptr;
  int task = 0;
  void operator()(std::exception_ptr failure = nullptr) const { run->end_late(task, std::move(failure)); }
};

/// What the late tasks of one run do.
class LateWork {
 public:
  /// Begins task `number` and returns soon. `ended` is called once, perhaps before the return; never where this throws.
  virtual void start(std::int64_t number, LateEnd ended) = 0;
  /// Moves on what has been started, unless another thread does just now: a thread that has nothing else to do calls it over and over.
  virtual void advance() noexcept {}
  /// Another task has failed with `why`: what was started, and may yet be, ends soon. Called once at most.
  virtual void stop(const std::exception_ptr& why) noexcept = 0;

 protected:
  ~LateWork() = default;
};

}  // namespace shardarray

// A thread that works beside a program which comes first.
#pragma once
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>

namespace shardarray::checkpoints {

/// Where others want its core, the thread sleeps so long that it takes a fiftieth of that; else, and when it is hurried, it goes on.
class Pace {
 public:
  static constexpr double share = 0.02;
  /// Seconds to sleep after a stretch of work that took so many by the clock and of the core: what waits for a disk sleeps less.
  static double rest_after(double clock, double core) {
    constexpr double alone = 1.25;  // by the clock beside of the core, where nobody else runs there
    return clock > alone * core ? core / share - clock : 0;
  }
  /// On the thread, now and then: ends a stretch.
  void rest() {
    const double core = core_seconds();
    const auto now = Clock::now();
    const double rest = rest_after(std::chrono::duration<double>(now - since_).count(), core - core_);
    std::unique_lock lock(mutex_);
    if (rest > 0) changed_.wait_for(lock, std::chrono::duration<double>(rest), [&] { return is_hurried_; });
    since_ = Clock::now();
    core_ = core;
  }
  /// From any thread: somebody waits.
  void hurry() {
    {
      const std::lock_guard lock(mutex_);
      is_hurried_ = true;
    }
    changed_.notify_all();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double core_seconds() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  Clock::time_point since_ = Clock::now();
  double core_ = 0;  // of the thread, which has just begun
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_hurried_ = false;
};

}  // namespace shardarray::checkpoints

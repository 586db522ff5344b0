// The pace of a background thread, which yields to the program.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "base/descriptor.h"

namespace shardarray::checkpoints {

/// If others want its core, the thread sleeps long enough to take only a fiftieth of it; otherwise, or when it is hurried, it runs on.
class Pace {
 public:
  static constexpr double share = 0.02;
  /// Seconds that the thread had the core, and that it waited for it (from Linux's schedstat).
  struct Core {
    double had = 0, waited = 0;
  };
  /// Seconds to sleep after a stretch of work.
  static double rest_after(const Core& stretch) {
    constexpr double alone = 0.25;  // it waits this much even if nobody else runs
    return stretch.waited > alone * stretch.had ? stretch.had / share - stretch.had - stretch.waited : 0;
  }
  /// Called on the thread, now and then: ends a stretch of work.
  void rest() {
    const Core now = of_thread();
    const double rest = rest_after({now.had - before_.had, now.waited - before_.waited});
    std::unique_lock lock(mutex_);
    if (rest > 0) changed_.wait_for(lock, std::chrono::duration<double>(rest), [&] { return is_hurried_; });
    before_ = now;
  }
  /// Called on any thread: somebody waits for the result.
  void hurry() {
    {
      const std::lock_guard lock(mutex_);
      is_hurried_ = true;
    }
    changed_.notify_all();
  }

 private:
  static Core of_thread() {
    const Descriptor file(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
    char text[64] = "";
    if (!file || read(file.get(), text, sizeof text - 1) <= 0) return {};  // then it never sleeps
    char* end = nullptr;
    const double had = std::strtod(text, &end);
    return {1e-9 * had, 1e-9 * std::strtod(end, nullptr)};
  }
  Core before_;  // zero, as the thread has just begun
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_hurried_ = false;
};

}  // namespace shardarray::checkpoints

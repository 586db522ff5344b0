// Of two ways to do the same thing again and again, the one that takes less time: found by taking both, now and then.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>

namespace shardarray {

/// Thread-safe; what several threads do at once is counted as if one did it.
class FasterWay {
 public:
  /// The first way is kept unless the second one takes so much less.
  static constexpr double worth_it = 0.95;
  /// Of so many times, the first ones take both ways in turns, after one that does not count.
  static constexpr std::int64_t period = 512, tried = 8;

  /// The way to take now, 0 or 1, by so many workers.
  int next(int workers) {
    const bool is_new = workers_.exchange(workers, std::memory_order_relaxed) != workers;
    if (is_new) times_.store(0, std::memory_order_relaxed);
    const std::int64_t k = times_.fetch_add(1, std::memory_order_relaxed) % period;
    if (k == 0)
      for (Times& t : times_of_) t.best = t.second = std::numeric_limits<double>::infinity();
    if (is_new) chosen_ = 0;
    if (k == tried + 1) chosen_ = times_of_[1].second < worth_it * times_of_[0].second ? 1 : 0;
    return k >= 1 && k <= tried ? static_cast<int>(k % 2) : chosen_.load(std::memory_order_relaxed);
  }
  /// It took so long. What is told of the time that does not count is forgotten.
  void took(int way, double ns) {
    if (times_.load(std::memory_order_relaxed) % period == 1) return;
    Times& t = times_of_[way];
    const double best = t.best.load(std::memory_order_relaxed);
    if (ns < t.second.load(std::memory_order_relaxed))
      t.second.store(std::max(ns, best), std::memory_order_relaxed);
    if (ns < best) t.best.store(ns, std::memory_order_relaxed);
  }

  /// One time, while it lives.
  class Turn {
   public:
    Turn(FasterWay& f, int workers)
        : f_(f), way_(f.next(workers)), thrown_(std::uncaught_exceptions()), start_(Clock::now()) {}
    ~Turn() {
      if (std::uncaught_exceptions() > thrown_) return;  // it has not done it
      f_.took(way_, std::chrono::duration<double, std::nano>(Clock::now() - start_).count());
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    int way() const { return way_; }

   private:
    using Clock = std::chrono::steady_clock;
    FasterWay& f_;
    const int way_, thrown_;
    const Clock::time_point start_;
  };

 private:
  std::atomic<std::int64_t> times_{0};
  /// The second best one counts: work that is shared out is fast now and then, and slower as a rule.
  struct Times {
    std::atomic<double> best{0}, second{0};
  };
  Times times_of_[2];
  std::atomic<int> chosen_{0}, workers_{0};
};

}  // namespace shardarray

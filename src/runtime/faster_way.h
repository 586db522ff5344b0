// Chooses the faster of two ways to do a repeated task by timing both now and then.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>

namespace shardarray {

/// Thread-safe; concurrent runs are counted as if sequential.
class FasterWay {
 public:
  /// Prefer the first way unless the second takes less than this fraction.
  static constexpr double worth_it = 0.95;
  /// Of every `period` runs, the first is ignored and the next `tried` alternate between the ways.
  static constexpr std::int64_t period = 512, tried = 8;

  /// The way to take now, 0 or 1, with this many workers.
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
  /// Records a time. The time of an ignored run is dropped.
  void took(int way, double ns) {
    if (times_.load(std::memory_order_relaxed) % period == 1) return;
    Times& t = times_of_[way];
    const double best = t.best.load(std::memory_order_relaxed);
    if (ns < t.second.load(std::memory_order_relaxed))
      t.second.store(std::max(ns, best), std::memory_order_relaxed);
    if (ns < best) t.best.store(ns, std::memory_order_relaxed);
  }

  /// Times one run while it lives.
  class Turn {
   public:
    Turn(FasterWay& f, int workers)
        : f_(f), way_(f.next(workers)), thrown_(std::uncaught_exceptions()), start_(Clock::now()) {}
    ~Turn() {
      if (std::uncaught_exceptions() > thrown_) return;  // it failed
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
  /// Compares second-best times: parallel work is occasionally fast, and slower as a rule.
  struct Times {
    std::atomic<double> best{0}, second{0};
  };
  Times times_of_[2];
  std::atomic<int> chosen_{0}, workers_{0};
};

}  // namespace shardarray

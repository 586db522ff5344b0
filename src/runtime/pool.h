// ThreadPool: the callers of jobs and the workers that help them.
//
// A worker is in a job only while that has something ready to do; else it looks at the other ones, oldest first. When none has,
// it spins for 50 us, then sleeps on a futex. A caller whose job others are busy with helps the jobs below it: those that were begun
// within it, as by a loop that one of its tasks is. Threads start with the first job that wants them. A forked child starts its own.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace shardarray {

/// Tells the core that a loop is waiting.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}
/// Calls `done` until it is true or a time, mostly 50 us, has passed; says which.
inline constexpr double longest_spin_ns = 50'000;
template <class Done> bool spin_until(Done done, double limit_ns = longest_spin_ns) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point end;
  for (bool first = true;; first = false) {
    for (int k = 0; k < 64; k++) {
      if (done()) return true;
      spin_pause();
    }
    const auto now = Clock::now();
    if (first) end = now + std::chrono::nanoseconds(static_cast<std::int64_t>(limit_ns));
    if (now > end) return false;
  }
}

/// What a caller shares out among itself and the workers. Nothing of it may throw.
class Job {
 public:
  /// On the caller's thread; returns when everything is done. Workers know nothing of the job before its announce().
  virtual void run() = 0;
  /// There is something that nobody has begun. Must see all that was published before a call of announce().
  virtual bool ready() = 0;
  /// On a worker: does what is ready.
  virtual void help() = 0;
  /// The job that this one was begun in; null: none. It lives as long as there is something to do here.
  Job* above() const { return above_; }
  /// A job below has something for the caller of this one; says whether that was asleep.
  virtual bool call_for_below() { return false; }

  /// In its scope this thread does the job's work: jobs that it begins are below it.
  class Scope {
   public:
    explicit Scope(Job& job);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Job* const before_;
  };

  /// Workers are in it. After its run they may still be about to leave; then nothing but this changes there.
  bool has_workers() const { return inside_.load(std::memory_order_acquire) != 0; }

 protected:
  ~Job() = default;

 private:
  friend class ThreadPool;
  Job* above_ = nullptr;
  std::atomic<int> inside_{0};  // workers in it; written under the pool's lock
};

class ThreadPool {
 public:
  /// Of the process; never destroyed.
  static ThreadPool& instance();
  explicit ThreadPool(int workers) : worker_count_(workers) {}
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() { stop(); }

  /// The caller counts as one.
  int worker_count() const { return worker_count_.load(std::memory_order_relaxed); }
  /// n >= 1, the caller included; only while nothing runs. Throws DeviceError for other numbers.
  void set_worker_count(int n);
  /// Runs the job with the help of those workers that are free. No worker joins it afterwards; some may still be about to leave
  /// it. May be called from several threads at once, and from within a job.
  void run(Job& job);
  /// The same for work(object), which shares out what there is to do among those who call it. Returns when all have left.
  void run(void (*work)(void*), void* object);
  /// On the caller of a job: helps the oldest job below it that has something ready; false: none has.
  bool help_below(const Job& job);
  /// After `count` pieces of a running job became ready that its callers do not take at once: free workers look for them.
  void announce(int count);
  /// Within Job::help(): waits a moment, `limit_ns` at most, for more of it to do; false: the worker is wanted elsewhere or gives
  /// up.
  template <class More> bool stay(More more, double limit_ns) {
    idle_.fetch_add(1);
    const int seen = epoch_.load();
    const bool stays = spin_until([&] { return more() || epoch_.load(std::memory_order_relaxed) != seen; },
                                  std::min(limit_ns, longest_spin_ns)) &&
                       more();
    idle_.fetch_sub(1);
    return stays;
  }

 private:
  friend struct PoolInChild;
  void start();
  void stop();
  void worker_loop();
  bool help();
  Job* join(const Job* above);
  void leave(Job* job);

  std::atomic<int> worker_count_;
  std::atomic<bool> started_{false}, stopping_{false};
  std::atomic<int> epoch_{0};  // grows with what is announced
  std::atomic<int> idle_{0};   // workers that look for something, spin or sleep
  std::mutex mutex_;
  std::condition_variable left_;
  std::vector<Job*> jobs_;
  std::vector<std::thread> threads_;
};

/// The cores that this process may use: the smaller of its affinity mask and its cgroup's quota, rounded up; of a launcher's
/// processes on one machine that are not bound to cores of their own, each has a share.
int available_cores();
/// The share of each of the launcher's processes on this machine, as its variables say.
int share_of_cores(int cores);
/// Cores by the quota of the cgroups that the file `groups` names, mounted at `root` (version 2 `cpu.max`, version 1
/// `cpu.cfs_quota_us`): the tightest up to the root; a large number without one.
int quota_cores(const std::string& groups = "/proc/self/cgroup", const std::string& root = "/sys/fs/cgroup");
/// The workers of the process's pool: SHARDARRAY_THREADS, else available_cores().
void set_worker_count(int n);

}  // namespace shardarray

// ThreadPool: the callers of jobs and the workers that help them.
//
// A worker stays in a job only while it has ready work; otherwise it looks at the others, oldest first. If none has any, it spins for 50
// us, then sleeps on a futex. A caller that waits for others helps the jobs below its own: those started within it, such as a loop that is
// one of its tasks. Threads start with the first job that wants them. A forked child starts its own.
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

/// Tells the core that this is a spin loop.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}
/// Calls `done` until it returns true or the time limit, 50 us by default, has passed; returns whether it did.
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

/// Work shared by a caller and the workers. Its functions must not throw.
class Job {
 public:
  /// On the caller's thread; returns when everything is done. Workers learn of the job only by its announce().
  virtual void run() = 0;
  /// Whether there is work that nobody has started. Must see everything published before a call of announce().
  virtual bool ready() = 0;
  /// On a worker: does ready work.
  virtual void help() = 0;
  /// The enclosing job, or null. It lives while there is work here.
  Job* above() const { return above_; }
  /// A job below has work for this job's caller; returns whether that was asleep.
  virtual bool call_for_below() { return false; }

  /// RAII: this thread works for the job; jobs that it starts are below it.
  class Scope {
   public:
    explicit Scope(Job& job);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Job* const before_;
  };

  /// Whether workers are inside. After the run some may still be about to leave, which changes only this.
  bool has_workers() const { return inside_.load(std::memory_order_acquire) != 0; }

 protected:
  ~Job() = default;

 private:
  friend class ThreadPool;
  Job* above_ = nullptr;
  std::atomic<int> inside_{0};  // workers inside; written under the pool's lock
};

class ThreadPool {
 public:
  /// The process's pool; never destroyed.
  static ThreadPool& instance();
  explicit ThreadPool(int workers) : worker_count_(workers) {}
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() { stop(); }

  /// Including the caller.
  int worker_count() const { return worker_count_.load(std::memory_order_relaxed); }
  /// n >= 1, including the caller; only while nothing runs. Throws DeviceError for other numbers.
  void set_worker_count(int n);
  /// Runs the job with the help of free workers. Afterwards no worker joins it, but some may still be about to leave. May be called
  /// concurrently, and from within a job.
  void run(Job& job);
  /// The same for work(object), which divides the work among its callers. Returns when all have left.
  void run(void (*work)(void*), void* object);
  /// For a job's caller: helps the oldest job below it that has ready work; false if none has.
  bool help_below(const Job& job);
  /// Call after `count` pieces of a running job became ready that its callers do not take at once: wakes free workers.
  void announce(int count);
  /// Within Job::help(): waits briefly, at most `limit_ns`, for more work of this job; false: the worker is needed elsewhere or gives up.
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
  std::atomic<int> epoch_{0};  // advanced by announce()
  std::atomic<int> idle_{0};   // workers that look for work, spin or sleep
  std::mutex mutex_;
  std::condition_variable left_;
  std::vector<Job*> jobs_;
  std::vector<std::thread> threads_;
};

/// The cores that this process may use: the minimum of its affinity mask and its cgroup quota, rounded up. Processes that a launcher
/// started on one machine without binding them share the cores.
int available_cores();
/// The share of one of the launcher's processes on this machine, according to its variables.
int share_of_cores(int cores);
/// Cores by the quota of the cgroups listed in the file `groups`, mounted at `root` (version 2 `cpu.max`, version 1 `cpu.cfs_quota_us`):
/// the tightest on the path to the root; a large number if there is none.
int quota_cores(const std::string& groups = "/proc/self/cgroup", const std::string& root = "/sys/fs/cgroup");
/// Sets the number of workers of the process's pool, initially SHARDARRAY_THREADS or available_cores().
void set_worker_count(int n);

}  // namespace shardarray

// ThreadPool: the caller and its workers.
//
// A worker that has nothing to do spins for 50 us, then sleeps on a futex. Threads start with the first job
// that wants them.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace shardarray {

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
  /// Calls work(object) on this thread and on every worker that is free; returns when all of them have
  /// returned. `work` must share out what there is to do among those who call it, and must not throw. May be
  /// called from several threads at once, and from within a job.
  void run(void (*work)(void*), void* object);

 private:
  struct Job {
    void (*work)(void*);
    void* object;
    bool open = true;            // somebody may still join
    std::atomic<int> inside{0};  // workers in it; written under the lock
  };
  void start();
  void stop();
  void worker_loop();
  bool help();

  std::atomic<int> worker_count_;
  std::atomic<bool> started_{false}, stopping_{false};
  std::atomic<int> epoch_{0};  // grows with every job
  std::mutex mutex_;
  std::condition_variable left_;
  std::vector<Job*> jobs_;
  std::vector<std::thread> threads_;
};

/// The cores that this process may use: the smaller of its affinity mask and its cgroup's quota, rounded up.
int available_cores();
/// Cores by the quota of the cgroups that the file `groups` names, mounted at `root` (version 2 `cpu.max`, version 1
/// `cpu.cfs_quota_us`): the tightest up to the root; a large number without one.
int quota_cores(const std::string& groups = "/proc/self/cgroup", const std::string& root = "/sys/fs/cgroup");
/// The workers of the process's pool: SHARDARRAY_THREADS, else all available cores.
void set_worker_count(int n);

/// Tells the core that a loop is waiting.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}
/// Calls `done` until it is true or 50 us have passed; says which.
template <class Done> bool spin_until(Done done) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point end;
  for (bool first = true;; first = false) {
    for (int k = 0; k < 64; k++) {
      if (done()) return true;
      spin_pause();
    }
    const auto now = Clock::now();
    if (first) end = now + std::chrono::microseconds(50);
    if (now > end) return false;
  }
}

}  // namespace shardarray

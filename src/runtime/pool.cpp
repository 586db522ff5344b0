#include "runtime/pool.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include "runtime/devices.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

constexpr int most_workers = 1024;

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace

int quota_cores(const std::string& groups_file, const std::string& root) {
  double cores = most_workers;
  const auto limit = [&](double quota, double period) {
    if (quota > 0 && period > 0) cores = std::min(cores, std::ceil(quota / period));
  };
  std::ifstream groups(groups_file);
  for (std::string line; std::getline(groups, line);) {  // `0::/path` or `3:cpu,cpuacct:/path`
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = ',' + line.substr(first + 1, second - first - 1) + ',';
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",cpu,") == std::string::npos) continue;
    for (std::string path = line.substr(second + 1);; path.resize(path.find_last_of('/'))) {
      double quota = 0, period = 0;
      if (unified) {
        if (std::ifstream(root + path + "/cpu.max") >> quota >> period)
          limit(quota, period);  // "max" does not parse
      } else {
        std::ifstream(root + "/cpu" + path + "/cpu.cfs_quota_us") >> quota;  // -1: unlimited
        std::ifstream(root + "/cpu" + path + "/cpu.cfs_period_us") >> period;
        limit(quota, period);
      }
      if (path.find('/') == std::string::npos) break;
    }
  }
  return static_cast<int>(std::max(1.0, cores));
}

int share_of_cores(int cores) {
  int processes = 1;  // set by mpirun of Open MPI, of MPICH, srun (`4(x2)`), torchrun
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE", "LOCAL_WORLD_SIZE"})
    if (const char* const text = std::getenv(name))
      processes = std::max(processes, static_cast<int>(std::strtol(text, nullptr, 10)));
  return std::max(1, cores / processes);
}

int available_cores() {
  const int bound = affinity_cores(), cores = std::min(bound, quota_cores());
  return bound < sysconf(_SC_NPROCESSORS_ONLN) ? cores : share_of_cores(cores);
}

struct PoolInChild {  // after fork() the child has the pool without its threads
  static void prepare();
  static void parent();
  static void child();
};

ThreadPool& ThreadPool::instance() {
  // Never destroyed: sleeping workers end with the process.
  static ThreadPool* const pool =
      new ThreadPool(count_from_environment("SHARDARRAY_THREADS", most_workers).value_or(available_cores()));
  static const int at_fork = pthread_atfork(PoolInChild::prepare, PoolInChild::parent, PoolInChild::child);
  static_cast<void>(at_fork);
  return *pool;
}

void set_worker_count(int n) { ThreadPool::instance().set_worker_count(n); }

void ThreadPool::set_worker_count(int n) {
  if (n < 1 || n > most_workers) {
    throw DeviceError(
        fmt::format("set_worker_count: the number is {}. It must be from 1 to {}. Choose another number.", n,
                    most_workers));
  }
  stop();
  worker_count_ = n;
}

void ThreadPool::start() {
  const std::lock_guard lock(mutex_);
  if (started_) return;
  jobs_.reserve(64);
  try {
    for (int k = 1; k < worker_count(); k++) threads_.emplace_back([this] { worker_loop(); });
  } catch (const std::system_error&) {
    // Thread creation failed: fewer workers give the same results.
  }
  started_ = true;
}

void ThreadPool::stop() {
  stopping_ = true;
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& t : threads_) t.join();
  threads_.clear();
  started_ = false;
  stopping_ = false;
}

namespace {

// One function, called by all workers.
class SharedWork final : public Job {
 public:
  SharedWork(ThreadPool& pool, void (*work)(void*), void* object)
      : pool_(pool), work_(work), object_(object) {}
  void run() override {
    pool_.announce(most_workers);
    work_(object_);
  }
  bool ready() override { return open_.load(std::memory_order_relaxed); }
  void help() override {
    work_(object_);
    open_.store(false, std::memory_order_relaxed);  // everything has been handed out
  }

 private:
  ThreadPool& pool_;
  void (*const work_)(void*);
  void* const object_;
  std::atomic<bool> open_{true};
};

}  // namespace

void ThreadPool::run(void (*work)(void*), void* object) {
  SharedWork job(*this, work, object);
  run(job);
  if (spin_until([&] { return !job.has_workers(); })) return;
  std::unique_lock lock(mutex_);
  left_.wait(lock, [&] { return !job.has_workers(); });
}

static constinit thread_local Job* job_of_thread = nullptr;

Job::Scope::Scope(Job& job) : before_(std::exchange(job_of_thread, &job)) {}
Job::Scope::~Scope() { job_of_thread = before_; }

void ThreadPool::run(Job& job) {
  job.above_ = job_of_thread;
  if (worker_count() == 1) return job.run();
  if (!started_) start();
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(&job);
  }
  job.run();
  const std::lock_guard lock(mutex_);
  std::erase(jobs_, &job);  // no worker joins from here on
}

// A worker counts itself idle, reads the epoch, then looks for work; a publisher first publishes, then checks for idle workers and advances
// the epoch. By sequential consistency the worker sees either the work or the new epoch.
void ThreadPool::announce(int count) {
  const int idle = idle_.load();
  if (idle == 0 || count <= 0) return;
  epoch_.fetch_add(1);
  if (count >= idle) return epoch_.notify_all();
  for (int k = 0; k < count; k++) epoch_.notify_one();
}

/// The oldest job with something ready, only below `above` if given; null if there is none.
Job* ThreadPool::join(const Job* above) {
  const auto is_below = [above](const Job* j) {
    if (above == nullptr) return true;
    for (j = j->above_; j != nullptr; j = j->above_)
      if (j == above) return true;
    return false;
  };
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [&](Job* j) { return is_below(j) && j->ready(); });
  if (found == jobs_.end()) return nullptr;
  (*found)->inside_.fetch_add(1, std::memory_order_relaxed);
  return *found;
}
/// The job may be destroyed as soon as nobody is inside.
void ThreadPool::leave(Job* job) {
  const std::lock_guard lock(mutex_);
  if (job->inside_.fetch_sub(1, std::memory_order_release) == 1) left_.notify_all();
}

bool ThreadPool::help() {
  Job* const job = join(nullptr);
  if (job == nullptr) return false;
  idle_.fetch_sub(1);
  job->help();
  idle_.fetch_add(1);
  leave(job);
  return true;
}

bool ThreadPool::help_below(const Job& above) {
  Job* const job = join(&above);
  if (job == nullptr) return false;
  job->help();
  leave(job);
  return true;
}

void ThreadPool::worker_loop() {
  idle_.fetch_add(1);
  for (;;) {
    const int seen = epoch_.load();
    if (stopping_) break;
    if (help()) continue;
    if (spin_until([&] { return epoch_.load(std::memory_order_relaxed) != seen; })) continue;
    epoch_.wait(seen);
  }
  idle_.fetch_sub(1);
}

void PoolInChild::prepare() { ThreadPool::instance().mutex_.lock(); }
void PoolInChild::parent() { ThreadPool::instance().mutex_.unlock(); }
void PoolInChild::child() {
  ThreadPool& pool = ThreadPool::instance();
  static auto& gone = *new std::vector<std::thread>;  // cannot be joined in the child
  for (std::thread& t : pool.threads_) gone.push_back(std::move(t));
  pool.threads_.clear();
  new (&pool.left_) std::condition_variable;  // without the parent's waiters
  pool.jobs_.clear();                         // of threads that do not exist here
  pool.idle_ = 0;
  pool.started_ = false;
  pool.mutex_.unlock();
}

}  // namespace shardarray

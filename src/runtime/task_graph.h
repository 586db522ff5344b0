// TaskGraph: a static graph of tasks, built once, run often.
//
// Edges follow from memory: two groups of tasks that touch a common byte run in the order in which they were added if at least one writes
// it. So reused memory and in-place updates are correct by construction. A thread takes only ready tasks and never waits for one that
// another thread has, so any number of workers makes progress, and idle workers are free for other graphs. A thread that ends a task
// continues with one that this made ready, so chains stay on their thread. Others are woken only for enough work, and nobody waits for a
// worker without a task. A late task is started by the thread that takes it and ends when somebody outside reports it: it blocks only its
// successors.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/float_mode.h"
#include "runtime/faster_way.h"
#include "runtime/late_work.h"
#include "runtime/memory_range.h"
#include "runtime/pool.h"

namespace shardarray {

struct Task {
  void (*run)(const void* object, void* const* bases, std::int64_t begin, std::int64_t end);
  const void* object;
  std::int64_t begin, end;
  double cost_ns;
  bool flush_denormals = false;
  void operator()(void* const* bases) const {
    const FlushDenormals mode(flush_denormals);
    run(object, bases, begin, end);
  }
};

class TaskGraph {
 public:
  /// Graphs with less work run on the caller: waking a worker would cost more than it gains.
  static constexpr double small_ns = 60'000;

  TaskGraph();
  ~TaskGraph();
  TaskGraph(const TaskGraph&) = delete;
  TaskGraph& operator=(const TaskGraph&) = delete;

  /// Adds tasks that are independent of each other and together touch these ranges: the chunks of one item.
  void add(std::span<const Task> tasks, std::span<const MemoryRange> reads,
           std::span<const MemoryRange> writes);
  void add(const Task& task, std::span<const MemoryRange> reads, std::span<const MemoryRange> writes) {
    add(std::span(&task, 1), reads, writes);
  }
  /// Adds a late task, identified to LateWork by this number.
  void add_late(std::int64_t number, std::span<const MemoryRange> reads,
                std::span<const MemoryRange> writes) {
    late_ = true;
    add(Task{nullptr, nullptr, number, number + 1, 0}, reads, writes);
  }
  /// Finishes building.
  void finish();

  /// Runs all tasks and returns. Small graphs run on the caller, in the order of addition, and so do graphs for which sharing turns out
  /// slower, as when two workers share a core. The first exception of a task is rethrown after the rest has stopped. Thread-safe for
  /// different bases.
  void run(void* const* bases, ThreadPool& pool = ThreadPool::instance()) const { run(bases, nullptr, pool); }
  /// The same with late tasks. All have ended when it returns.
  void run(void* const* bases, LateWork& late, ThreadPool& pool = ThreadPool::instance()) const {
    run(bases, &late, pool);
  }

  /// Including the joints between groups of tasks.
  int size() const { return static_cast<int>(tasks_.size()); }
  int edge_count() const { return static_cast<int>(successors_.size()); }
  double total_cost_ns() const { return total_cost_ns_; }

 private:
  struct Segment {
    std::uint64_t hi;
    int writer;                // -1: none
    std::vector<int> readers;  // since the last write
  };
  using Segments =
      std::map<std::uint64_t, Segment>;  // by lo; without gaps or overlaps within what was touched
  struct RunState;

  int add_task(const Task& t, std::span<const int> after);
  Segments::iterator split(Segments& s, std::uint64_t at);
  template <class Visit> void visit(const MemoryRange& r, Visit visit_segment);
  void add_reader(Segment& s, int reader);
  void need(std::vector<int>& after, int task);
  std::unique_ptr<RunState> take_state() const;
  void run(void* const* bases, LateWork* late, ThreadPool& pool) const;
  void run_shared(void* const* bases, LateWork* late, ThreadPool& pool) const;
  void run_inline(void* const* bases) const;

  std::vector<Task> tasks_;
  std::vector<std::pair<int, int>> edges_;  // while building: from, to
  std::vector<Segments> bases_;             // while building
  std::vector<int> mark_;                   // task -> the last addition that depends on it
  int additions_ = 0;
  bool late_ = false;

  std::vector<int> successors_, successor_begin_, predecessor_count_;
  double total_cost_ns_ = 0, critical_cost_ns_ = 0;
  mutable FasterWay faster_;  // run_shared or run_inline
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<RunState>> states_;
};

}  // namespace shardarray

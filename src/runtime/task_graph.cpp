#include "runtime/task_graph.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace shardarray {
namespace {

constexpr double small_gain_ns = 20'000;  // likewise, if sharing could save less than this
constexpr double worth_waking_ns = 20'000;
// Graphs that are shorter than this and gain at most this factor are timed both ways: for longer ones trying the slower way costs too much.
constexpr double long_ns = 20e6, clear_gain = 3;
// A thread keeps ready tasks up to this cost for itself: another one would take longer to fetch them, and may be preempted while holding
// them.
constexpr double own_ns = 10'000;
// How long a caller that waits for late tasks makes progress on them itself; after that it leaves them to whoever runs them.
constexpr double longest_late_spin_ns = 1'000'000;
// Longer reader lists are replaced by one joint, so that the number of edges stays linear.
constexpr std::size_t most_readers = 8;
constexpr Task joint_task = {nullptr, nullptr, 0, 0, 0};

}  // namespace

/// One run: its counters, and the code of its caller and workers. Reusable when no worker is inside.
struct TaskGraph::RunState final : Job, LateRun {
  explicit RunState(std::size_t n) : pending(n), after(n + 1), below(n) {}
  void begin(const TaskGraph& g, void* const* b, LateWork* l, ThreadPool& p);
  void run() override;
  bool ready() override { return after[static_cast<std::size_t>(head.load())].load() >= 0; }
  void help() override;
  void end_late(int task, std::exception_ptr failure) override;
  bool call_for_below() override;
  /// Keeps states alive until no worker is inside.
  static void keep_until_left(std::vector<std::unique_ptr<RunState>> states);
  /// The last threads in start() and end_late() may still be about to leave; only then may the caller's late work be destroyed.
  void wait_for_late_calls() const {
    while (!spin_until([&] { return in_late_calls.load() == 0; })) std::this_thread::yield();
  }

  const TaskGraph* graph = nullptr;
  LateWork* late = nullptr;
  ThreadPool* pool = nullptr;
  void* const* bases = nullptr;
  std::vector<std::atomic<int>> pending;  // task -> unfinished predecessors
  // The queue of ready tasks that nobody has taken (Michael and Scott 1996). A task is published by a single exchange, so a preempted
  // thread blocks nobody; and at most once per run, so no link is reused.
  std::vector<std::atomic<int>>
      after;  // task -> the next one in the queue, or -1. The last entry precedes the first task.
  std::vector<int> below;                // next task on the stack of those a thread keeps
  alignas(64) std::atomic<int> head{0};  // the last task taken
  alignas(64) std::atomic<int> tail{0};  // the last task or the one before
  alignas(64) std::atomic<int> left{0};  // unfinished tasks
  std::atomic<int> calls{0};             // incremented to wake the caller
  std::atomic<int> below_calls{0};       // incremented when jobs below have work for the caller
  std::atomic<int> in_late_calls{0};     // threads in start() of late work or in end_late()
  std::atomic<bool> caller_sleeps{false};
  std::atomic<bool> failed{false};
  std::exception_ptr error;

 private:
  /// Tasks that one thread made ready.
  struct Ready {
    int kept = -1;  // kept by this thread: top of a stack
    double kept_ns = 0;
    int published = 0;
    double published_ns = 0;
  };
  struct LateCall {
    std::atomic<int>& count;
    explicit LateCall(RunState& s) : count(s.in_late_calls) { count.fetch_add(1); }
    ~LateCall() { count.fetch_sub(1); }
    LateCall(const LateCall&) = delete;
    LateCall& operator=(const LateCall&) = delete;
  };
  Ready first_;  // tasks without predecessors
  bool finished() const { return left.load() == 0; }
  double cost_of(int task) const { return graph->tasks_[static_cast<std::size_t>(task)].cost_ns; }
  void publish(int task);
  void put(int task, Ready& ready, bool may_keep);
  int take(Ready& ready);
  int take();
  void start_late(int task);
  bool ends_now(int task);
  void fail(std::exception_ptr why);
  void end(int task, bool may_keep, Ready& ready);
  double run_ready();
  void share(Ready& ready);
  void help_below(int& seen);
  void wake(int count);
  bool wake_caller();
};

TaskGraph::TaskGraph() = default;

/// A worker may still be about to leave a finished run: it only touches the state.
TaskGraph::~TaskGraph() { RunState::keep_until_left(std::move(states_)); }

void TaskGraph::RunState::keep_until_left(std::vector<std::unique_ptr<RunState>> states) {
  const auto is_left = [](const auto& s) { return !s->has_workers(); };
  std::erase_if(states, is_left);
  if (states.empty()) return;
  static auto* const mutex = new std::mutex;
  static auto* const left_behind = new std::vector<std::unique_ptr<RunState>>;
  const std::lock_guard lock(*mutex);
  std::erase_if(*left_behind, is_left);
  for (auto& s : states) left_behind->push_back(std::move(s));
}

int TaskGraph::add_task(const Task& t, std::span<const int> after) {
  const int id = size();
  tasks_.push_back(t);
  mark_.push_back(0);
  for (int from : after) edges_.emplace_back(from, id);
  return id;
}

/// Makes `at` a segment boundary; returns the first segment that starts at or after it.
TaskGraph::Segments::iterator TaskGraph::split(Segments& s, std::uint64_t at) {
  const auto next = s.lower_bound(at);
  if (next == s.begin()) return next;
  const auto before = std::prev(next);
  if (before->second.hi <= at || before->first == at) return next;
  Segment upper = before->second;
  before->second.hi = at;
  return s.emplace_hint(next, at, std::move(upper));
}

/// Calls visit_segment for the segments that make up `r`, creating missing ones.
template <class Visit> void TaskGraph::visit(const MemoryRange& r, Visit visit_segment) {
  if (r.lo >= r.hi) return;
  if (bases_.size() <= r.base) bases_.resize(r.base + 1);
  Segments& s = bases_[r.base];
  split(s, r.hi);
  auto it = split(s, r.lo);
  for (std::uint64_t at = r.lo; at < r.hi;) {
    if (it == s.end() || it->first > at) {
      const std::uint64_t hi = it == s.end() ? r.hi : std::min(r.hi, it->first);
      it = s.emplace_hint(it, at, Segment{hi, -1, {}});
    }
    visit_segment(it->second);
    at = it->second.hi;
    ++it;
  }
}

void TaskGraph::need(std::vector<int>& after, int task) {
  int& mark = mark_[static_cast<std::size_t>(task)];
  if (mark == additions_) return;
  mark = additions_;
  after.push_back(task);
}

void TaskGraph::add_reader(Segment& s, int reader) {
  if (!s.readers.empty() && s.readers.back() == reader) return;
  if (s.readers.size() == most_readers) s.readers = {add_task(joint_task, s.readers)};
  s.readers.push_back(reader);
}

void TaskGraph::add(std::span<const Task> tasks, std::span<const MemoryRange> reads,
                    std::span<const MemoryRange> writes) {
  if (tasks.empty()) return;
  additions_++;
  std::vector<int> after;
  for (const MemoryRange& r : reads) {
    visit(r, [&](Segment& s) {
      if (s.writer >= 0) need(after, s.writer);
    });
  }
  for (const MemoryRange& r : writes) {
    visit(r, [&](Segment& s) {  // all readers depend on the writer
      for (int reader : s.readers) need(after, reader);
      if (s.readers.empty() && s.writer >= 0) need(after, s.writer);
    });
  }
  // Many-to-many dependencies go through joints, so that edges stay linear in the number of chunks.
  if (tasks.size() > 1 && after.size() > 1) after = {add_task(joint_task, after)};
  std::vector<int> added;
  for (const Task& t : tasks) added.push_back(add_task(t, after));
  const int last = added.size() == 1 ? added[0] : add_task(joint_task, added);

  for (const MemoryRange& r : reads) visit(r, [&](Segment& s) { add_reader(s, last); });
  for (const MemoryRange& r : writes) {
    if (r.lo >= r.hi) continue;
    Segments& s = bases_[r.base];
    const auto first = split(s, r.lo);
    const auto end = split(s, r.hi);
    s.insert_or_assign(s.erase(first, end), r.lo, Segment{r.hi, last, {}});
  }
}

void TaskGraph::finish() {
  const auto n = tasks_.size();
  successor_begin_.assign(n + 1, 0);
  predecessor_count_.assign(n, 0);
  for (const auto& [from, to] : edges_) {
    successor_begin_[static_cast<std::size_t>(from) + 1]++;
    predecessor_count_[static_cast<std::size_t>(to)]++;
  }
  for (std::size_t k = 0; k < n; k++) successor_begin_[k + 1] += successor_begin_[k];
  successors_.resize(edges_.size());
  std::vector<int> next(successor_begin_.begin(), successor_begin_.end());
  for (const auto& [from, to] : edges_)
    successors_[static_cast<std::size_t>(next[static_cast<std::size_t>(from)]++)] = to;

  std::vector<double> start(n, 0.0);  // earliest start, with unlimited workers
  for (std::size_t k = 0; k < n; k++) {
    const double end = start[k] + tasks_[k].cost_ns;
    total_cost_ns_ += tasks_[k].cost_ns;
    critical_cost_ns_ = std::max(critical_cost_ns_, end);
    for (int e = successor_begin_[k]; e < successor_begin_[k + 1]; e++) {
      double& s = start[static_cast<std::size_t>(successors_[static_cast<std::size_t>(e)])];
      s = std::max(s, end);
    }
  }
  edges_ = {};
  bases_ = {};
  mark_ = {};
}

void TaskGraph::run_inline(void* const* bases) const {
  for (const Task& t : tasks_) {
    if (t.run != nullptr) t(bases);
  }
}

std::unique_ptr<TaskGraph::RunState> TaskGraph::take_state() const {
  {
    const std::lock_guard lock(mutex_);
    const auto free =
        std::find_if(states_.rbegin(), states_.rend(), [](const auto& s) { return !s->has_workers(); });
    if (free != states_.rend()) {
      std::swap(*free, states_.back());
      auto state = std::move(states_.back());
      states_.pop_back();
      return state;
    }
  }
  return std::make_unique<RunState>(tasks_.size());
}

void TaskGraph::run(void* const* bases, LateWork* late, ThreadPool& pool) const {
  if (!late_ && (pool.worker_count() == 1 || total_cost_ns_ < small_ns ||
                 total_cost_ns_ - critical_cost_ns_ < small_gain_ns)) {
    return run_inline(bases);
  }
  if (late_ || total_cost_ns_ > long_ns || total_cost_ns_ > clear_gain * critical_cost_ns_)
    return run_shared(bases, late, pool);
  const FasterWay::Turn turn(faster_, pool.worker_count());
  if (turn.way() == 0) run_shared(bases, late, pool);
  else run_inline(bases);
}

void TaskGraph::run_shared(void* const* bases, LateWork* late, ThreadPool& pool) const {
  auto state = take_state();
  state->begin(*this, bases, late, pool);
  pool.run(*state);
  if (late_) state->wait_for_late_calls();
  std::exception_ptr error = std::exchange(state->error, nullptr);
  {
    const std::lock_guard lock(mutex_);
    states_.push_back(std::move(state));
  }
  if (error) std::rethrow_exception(error);
}

void TaskGraph::RunState::begin(const TaskGraph& g, void* const* b, LateWork* l, ThreadPool& p) {
  graph = &g;
  late = l;
  pool = &p;
  bases = b;
  const int n = g.size();
  for (std::size_t k = 0; k < g.tasks_.size(); k++) {
    pending[k].store(g.predecessor_count_[k], std::memory_order_relaxed);
    after[k].store(-1, std::memory_order_relaxed);
  }
  after.back().store(-1, std::memory_order_relaxed);
  head.store(n, std::memory_order_relaxed);
  tail.store(n, std::memory_order_relaxed);
  left.store(n, std::memory_order_relaxed);
  below_calls.store(0, std::memory_order_relaxed);
  failed.store(false, std::memory_order_relaxed);
  first_ = {};
  for (int k = 0; k < n; k++) {
    if (g.predecessor_count_[static_cast<std::size_t>(k)] != 0) continue;
    put(k, first_, false);
  }
}

void TaskGraph::RunState::publish(int task) {
  for (int at = tail.load();;) {
    int behind = -1;
    if (after[static_cast<std::size_t>(at)].compare_exchange_strong(behind, task)) {
      tail.compare_exchange_strong(at, task);  // fails if another thread has done it
      return;
    }
    if (tail.compare_exchange_strong(at, behind)) at = behind;
  }
}

/// Keeps small tasks, and at least one, so that a chain stays on its thread.
void TaskGraph::RunState::put(int task, Ready& ready, bool may_keep) {
  const double cost = cost_of(task);
  if (may_keep && (ready.kept < 0 || ready.kept_ns + cost <= own_ns)) {
    below[static_cast<std::size_t>(task)] = std::exchange(ready.kept, task);
    ready.kept_ns += cost;
    return;
  }
  publish(task);
  ready.published++;
  ready.published_ns += cost;
}

/// Kept tasks first.
int TaskGraph::RunState::take(Ready& ready) {
  const int task = ready.kept;
  if (task < 0) return take();
  ready.kept = below[static_cast<std::size_t>(task)];
  ready.kept_ns = ready.kept < 0 ? 0 : ready.kept_ns - cost_of(task);
  return task;
}

/// Takes a ready task; -1 if there is none.
int TaskGraph::RunState::take() {
  for (int at = head.load();;) {
    const int task = after[static_cast<std::size_t>(at)].load();
    if (task < 0 || head.compare_exchange_weak(at, task)) return task;
  }
}

/// Puts the tasks that became ready when this one ended.
void TaskGraph::RunState::end(int task, bool may_keep, Ready& ready) {
  const auto t = static_cast<std::size_t>(task);
  for (int e = graph->successor_begin_[t]; e < graph->successor_begin_[t + 1]; e++) {
    const int next = graph->successors_[static_cast<std::size_t>(e)];
    if (pending[static_cast<std::size_t>(next)].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    put(next, ready, may_keep);
  }
}

/// The task, and with it the run, may end before start() returns.
void TaskGraph::RunState::start_late(int task) {
  const LateCall inside(*this);
  late->start(graph->tasks_[static_cast<std::size_t>(task)].begin, {this, task});
  late->advance();
}

/// Runs it; false if it ends later.
bool TaskGraph::RunState::ends_now(int task) {
  const Task& t = graph->tasks_[static_cast<std::size_t>(task)];
  if (failed.load(std::memory_order_relaxed)) return true;
  const bool is_late = t.run == nullptr && t.begin < t.end;
  try {
    if (t.run != nullptr) t(bases);
    else if (is_late) start_late(task);
  } catch (...) {
    fail(std::current_exception());
    return true;
  }
  return !is_late;
}

/// Only the first failure is kept.
void TaskGraph::RunState::fail(std::exception_ptr why) {
  if (failed.exchange(true)) return;
  error = std::move(why);
  if (late != nullptr) late->stop(error);
}

/// Returns the cost of the tasks it ran.
double TaskGraph::RunState::run_ready() {
  int ended = 0;
  double worked_ns = 0;
  Ready ready;
  for (int task; (task = take(ready)) >= 0;) {
    if (!ends_now(task)) continue;
    ended++;
    worked_ns += cost_of(task);
    end(task, true, ready);
    share(ready);
  }
  if (ended > 0 && left.fetch_sub(ended) == ended) wake_caller();
  return worked_ns;
}

void TaskGraph::RunState::end_late(int task, std::exception_ptr failure) {
  const LateCall inside(*this);
  if (failure) fail(std::move(failure));
  Ready ready;
  end(task, false, ready);
  wake(ready.published);
  if (left.fetch_sub(1) == 1) wake_caller();
}

/// Wakes others if there is enough work; otherwise this thread does it, unless others are awake.
void TaskGraph::RunState::share(Ready& ready) {
  if (ready.published_ns < worth_waking_ns) return;
  wake(std::min(ready.published, static_cast<int>(std::min(ready.published_ns / worth_waking_ns, 1e6))));
  ready.published = 0;
  ready.published_ns = 0;
}

/// Wakes threads for this many ready tasks.
void TaskGraph::RunState::wake(int count) {
  if (count <= 0) return;
  if (wake_caller()) count--;
  for (Job* job = above(); job != nullptr && count > 0; job = job->above()) count -= job->call_for_below();
  pool->announce(count);
}

/// A caller that waits for late tasks does not help jobs below: a late task there may wait for what this run has to send.
bool TaskGraph::RunState::call_for_below() {
  if (late != nullptr) return false;
  below_calls.fetch_add(1);
  return wake_caller();
}

/// Helps jobs below that have called since `seen`.
void TaskGraph::RunState::help_below(int& seen) {
  for (int now; (now = below_calls.load()) != seen; seen = now) {
    do {
      if (finished() || ready()) return;  // the call remains unanswered
    } while (pool->help_below(*this));
  }
}

bool TaskGraph::RunState::wake_caller() {
  if (!caller_sleeps.load() || !caller_sleeps.exchange(false)) return false;
  calls.fetch_add(1);
  calls.notify_one();
  return true;
}

void TaskGraph::RunState::run() {
  const Scope scope(*this);
  share(first_);
  int seen_below = 0;  // as set by begin()
  for (;;) {
    run_ready();
    help_below(seen_below);
    const auto wanted = [&] { return finished() || ready() || below_calls.load() != seen_below; };
    const auto comes = [&] {
      if (wanted()) return true;
      if (late == nullptr) return false;
      late->advance();
      std::this_thread::yield();  // to whoever computes what we wait for, perhaps another process
      return wanted();
    };
    if (!spin_until(comes, late != nullptr ? longest_late_spin_ns : longest_spin_ns)) {
      // Marks itself asleep, then checks again: publishers look for sleepers after publishing.
      const int seen = calls.load();
      caller_sleeps.store(true);
      if (!wanted()) calls.wait(seen);
      caller_sleeps.store(false);
    }
    if (finished()) return;
  }
}

/// A worker waits for more work no longer than it has worked.
void TaskGraph::RunState::help() {
  const Scope scope(*this);
  double worked_ns = 0;
  do worked_ns = run_ready();
  while (!finished() && pool->stay([&] { return finished() || ready(); }, worked_ns));
}

}  // namespace shardarray

#include "cpu/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include "cpu/codegen/compiled_work.h"
#include "cpu/part_run.h"
#include "runtime/task_graph.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

constexpr std::int64_t chunks_per_item = 32;  // enough for the workers of a large machine

// The cost of deciding which kernels are worth compiling; the decision is made when the time spent reaches look_factor times that cost, and
// again whenever it doubles.
constexpr double look_ns = 20'000, look_work_ns = 3'000, look_factor = 4;

/// One way to run the program.
struct ProgramTasks {
  explicit ProgramTasks(const std::vector<Work>& works) {
    for (const Work& w : works) add(w);
    graph.finish();
  }
  explicit ProgramTasks(std::unique_ptr<CompiledWork> compiled) : ProgramTasks(compiled->all()) {
    code = std::move(compiled);
  }

  /// Splits the work into chunks.
  void add(const Work& w) {
    if (w.box >= 0) return graph.add_late(w.box, w.reads, w.writes);
    const Task& all = w.units;
    if (all.begin >= all.end) return;
    const auto by_cost = static_cast<std::int64_t>(std::min(all.cost_ns / chunk_ns, 1e6));
    const std::int64_t units = all.end - all.begin,
                       most = std::min(std::max<std::int64_t>(1, units / w.least_units), chunks_per_item),
                       chunks = std::clamp<std::int64_t>(by_cost, 1, most);
    const auto start = [&](std::int64_t c) {  // units * c may overflow
      return all.begin + units / chunks * c + std::min(c, units % chunks);
    };
    std::vector<Task> tasks;
    for (std::int64_t c = 0; c < chunks; c++)
      tasks.push_back({all.run, all.object, start(c), start(c + 1), all.cost_ns / static_cast<double>(chunks),
                       all.flush_denormals});
    graph.add(tasks, w.reads, w.writes);
  }

  std::unique_ptr<CompiledWork> code;
  TaskGraph graph;
};

class TieredExecutable final : public CpuExecutable {
 public:
  explicit TieredExecutable(std::shared_ptr<const Program> program,
                            std::shared_ptr<const LocalPart> part = nullptr, Transport* transport = nullptr)
      : program_(std::move(program)),
        part_(std::move(part)),
        transport_(transport),
        works_(*program_, part_ ? std::span(part_->boxes) : std::span<const PartBox>(), transport) {
    add_tasks(std::make_unique<ProgramTasks>(works_.all()));
    choose_budget();
    if (codegen_mode() == CodegenMode::always && cost_of_run_ > 0)
      compile(CodeTier::quick, CompiledWork::endless_runs);
  }

  /// The program will run often.
  void prepare() const override {
    if (stage_.load(std::memory_order_relaxed) == Stage::interpreted) haste_ = 10;
  }

  double cost_ns() const override { return current_.load(std::memory_order_acquire)->graph.total_cost_ns(); }
  const WorkList& works() const override { return works_; }

  CompletionRef run(std::span<void* const> bases, RunReport* report, std::uint64_t numbers) const override {
    run_now(bases, report, numbers);
    return nullptr;
  }

 private:
  void run_now(std::span<void* const> bases, RunReport* report, std::uint64_t numbers) const {
    if (bases.size() != program_->base_count) {
      throw InternalError(fmt::format(
          "run: {} base pointers, the program has {}. Every input, output and scratch arena has one. "
          "Please report this.",
          bases.size(), program_->base_count));
    }
    if (stage_.load(std::memory_order_relaxed) == Stage::done) return run_tasks(bases, report, numbers);
    // Concurrent runs may count as one.
    const double spent =
        haste_.load(std::memory_order_relaxed) * (spent_.load(std::memory_order_relaxed) + cost_of_run_);
    if (spent >= next_.load(std::memory_order_relaxed)) spend(spent);
    const auto start = std::chrono::steady_clock::now();
    run_tasks(bases, report, numbers);
    // The time that code would save; estimates miss the overhead of many small steps.
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    const double counted = std::max(cost_of_run_, share_ * took.count());
    spent_.store(spent_.load(std::memory_order_relaxed) + counted, std::memory_order_relaxed);
  }

  void run_tasks(std::span<void* const> bases, RunReport* report, std::uint64_t numbers) const {
    const ProgramTasks& tasks = *current_.load(std::memory_order_acquire);
    if (report != nullptr) report->received.assign(program_->transfers.size(), 0);
    if (program_->transfers.empty()) return run_graph(tasks.graph, bases.data(), numbers);
    if (report != nullptr && part_)
      for (const PartBox& b : part_->boxes)
        if (b.transfer >= 0)
          report->received[static_cast<std::size_t>(b.transfer)] += static_cast<std::int64_t>(b.bytes);
    // One extra base: the counters of exchanges.
    constexpr std::size_t small = 256;
    void* on_stack[small];
    std::vector<void*> on_heap(bases.size() < small ? 0 : bases.size() + 1);
    void** const all = on_heap.empty() ? on_stack : on_heap.data();
    std::copy(bases.begin(), bases.end(), all);
    all[bases.size()] = report != nullptr ? report->received.data() : nullptr;
    run_graph(tasks.graph, all, numbers);
  }

  void run_graph(const TaskGraph& graph, void* const* bases, std::uint64_t numbers) const {
    if (!part_) return graph.run(bases);
    PartRun boxes(*part_, *transport_, bases, numbers);
    graph.run(bases, boxes);
  }

  enum class Stage : std::uint8_t { interpreted, quick, done };

  void add_tasks(std::unique_ptr<ProgramTasks> tasks) const {
    current_.store(tasks.get(), std::memory_order_release);
    tasks_.push_back(std::move(tasks));  // a run may still use the previous tasks
  }

  void choose_budget() {
    cost_of_run_ = works_.interpreted_ns();
    share_ = std::min(1.0, cost_of_run_ / std::max(1.0, cost_ns()));
    if (cost_of_run_ == 0 || codegen_mode() == CodegenMode::off) stage_ = Stage::done;
    next_ = look_factor * (look_ns + look_work_ns * static_cast<double>(works_.all().size()));
  }

  /// Enough time has been spent that compiling may pay.
  void spend(double spent) const {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;  // another thread does it
    const Stage stage = stage_.load(std::memory_order_relaxed);
    if (stage == Stage::quick) compile(CodeTier::full, CompiledWork::endless_runs);
    if (stage != Stage::interpreted) return;
    // Hot kernels do not wait for those that never become hot.
    const bool hot =
        kernels_ > 0 && spent_.load(std::memory_order_relaxed) >= 2 * full_tier_factor * worth_ns_;
    compile(hot ? CodeTier::full : tier_, spent / cost_of_run_);
    if (stage_.load(std::memory_order_relaxed) == Stage::interpreted) next_ = 2 * spent;
  }

  /// Compiles what is worth it after so many interpreted runs. Uses the full tier at once if a single run costs as much.
  void compile(CodeTier tier, double runs) const {
    auto code = CompiledWork::make(works_, tier, runs);
    if (!code) {
      stage_ = Stage::done;
      return;
    }
    if (compile_ns_ == 0) next_budget_ = compile_ns_ = code->compile_ns();
    if (tier == CodeTier::quick && runs < CompiledWork::endless_runs &&
        cost_of_run_ > full_tier_factor * compile_ns_)
      return compile(CodeTier::full, CompiledWork::endless_runs);
    const bool done = tier == CodeTier::full && code->complete(), all = code->all_worth();
    if (!all && code->kernels() == kernels_ && tier == tier_) return;
    kernels_ = code->kernels();
    worth_ns_ = code->worth_ns();
    tier_ = tier;
    add_tasks(std::make_unique<ProgramTasks>(std::move(code)));
    if (!all) return;
    // Generated code costs a fraction of interpretation, and the tiers differ by less. What failed in the full tier is retried less and
    // less often.
    next_budget_ *= full_tier_factor;
    haste_ = 1;
    spent_ = 0;
    next_ = 2 * next_budget_;
    stage_ = done ? Stage::done : Stage::quick;
  }

  std::shared_ptr<const Program> program_;
  std::shared_ptr<const LocalPart> part_;  // null: this process has the whole program
  Transport* transport_;
  WorkList works_;
  mutable std::mutex mutex_;  // held while compiling
  mutable std::vector<std::unique_ptr<ProgramTasks>> tasks_;
  mutable std::atomic<const ProgramTasks*> current_{nullptr};
  mutable std::atomic<Stage> stage_{Stage::interpreted};
  // Nanoseconds interpreted since the last tier; when to decide next or compile the next tier.
  mutable std::atomic<double> spent_{0}, next_{0}, haste_{1};
  mutable double compile_ns_ = 0, next_budget_ = 0;  // under the mutex: of the quick tier; until the next one
  // Under the mutex: compiled works, their compile time, their tier.
  mutable std::size_t kernels_ = 0;
  mutable double worth_ns_ = 0;
  mutable CodeTier tier_ = CodeTier::quick;
  double cost_of_run_ = 0, share_ = 0;  // of what code would replace; its share of a run
};

}  // namespace

std::unique_ptr<CpuExecutable> make_cpu_executable(std::shared_ptr<const Program> program) {
  return std::make_unique<TieredExecutable>(std::move(program));
}

std::unique_ptr<CpuExecutable> make_cpu_executable(std::shared_ptr<const LocalPart> part,
                                                   Transport& transport) {
  std::shared_ptr<const Program> program = part->program;
  return std::make_unique<TieredExecutable>(std::move(program), std::move(part), &transport);
}

}  // namespace shardarray

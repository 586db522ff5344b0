#include "cpu/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
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

// What compiling takes in the quick tier: LLVM selects instructions one by one. The full tier takes four times that.
constexpr double compile_kernel_ns = 300'000, compile_instruction_ns = 15'000, compile_product_ns = 2'000'000,
                 full_factor = 4;

/// One way to run the program.
struct ProgramTasks {
  explicit ProgramTasks(const std::vector<Work>& works) {
    for (const Work& w : works) add(w);
    graph.finish();
  }
  explicit ProgramTasks(std::unique_ptr<CompiledWork> compiled) : ProgramTasks(compiled->all()) {
    code = std::move(compiled);
  }

  /// In chunks.
  void add(const Work& w) {
    if (w.box >= 0) return graph.add_late(w.box, w.reads, w.writes);
    const Task& all = w.units;
    if (all.begin >= all.end) return;
    const auto by_cost = static_cast<std::int64_t>(std::min(all.cost_ns / chunk_ns, 1e6));
    const std::int64_t units = all.end - all.begin,
                       most = std::min(std::max<std::int64_t>(1, units / w.least_units), chunks_per_item),
                       chunks = std::clamp<std::int64_t>(by_cost, 1, most);
    const auto start = [&](std::int64_t c) {  // units * c may not fit
      return all.begin + units / chunks * c + std::min(c, units % chunks);
    };
    std::vector<Task> tasks;
    for (std::int64_t c = 0; c < chunks; c++)
      tasks.push_back(
          {all.run, all.object, start(c), start(c + 1), all.cost_ns / static_cast<double>(chunks)});
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
        works_(*program_, part_ ? std::span(part_->boxes) : std::span<const PartBox>()) {
    add_tasks(std::make_unique<ProgramTasks>(works_.all()));
    choose_budget();
    if (codegen_mode() == CodegenMode::always) compile(CodeTier::quick);
  }

  void prepare() const override {
    if (stage_.load(std::memory_order_relaxed) != Stage::interpreted) return;
    budget_ = std::min(budget_.load(std::memory_order_relaxed), 0.1 * compile_ns_);
  }

  double cost_ns() const override { return current_.load(std::memory_order_acquire)->graph.total_cost_ns(); }

  CompletionRef run(std::span<void* const> bases, RunReport* report) const override {
    run_now(bases, report);
    return nullptr;
  }

 private:
  void run_now(std::span<void* const> bases, RunReport* report) const {
    if (bases.size() != program_->base_count) {
      throw InternalError(fmt::format(
          "run: {} base pointers, the program has {}. Every input, output and scratch arena has one. "
          "Please report this.",
          bases.size(), program_->base_count));
    }
    const double rest = budget_.load(std::memory_order_relaxed) - cost_of_run_;
    budget_.store(rest, std::memory_order_relaxed);  // two runs at once may count as one
    if (rest < 0) spend();
    const ProgramTasks& tasks = *current_.load(std::memory_order_acquire);
    if (report != nullptr) report->received.assign(program_->transfers.size(), 0);
    if (program_->transfers.empty()) return run_graph(tasks.graph, bases.data());
    // One more base: where exchanges count what they move.
    constexpr std::size_t small = 256;
    void* on_stack[small];
    std::vector<void*> on_heap(bases.size() < small ? 0 : bases.size() + 1);
    void** const all = on_heap.empty() ? on_stack : on_heap.data();
    std::copy(bases.begin(), bases.end(), all);
    all[bases.size()] = report != nullptr ? report->received.data() : nullptr;
    run_graph(tasks.graph, all);
  }

  void run_graph(const TaskGraph& graph, void* const* bases) const {
    if (!part_) return graph.run(bases);
    PartRun boxes(*part_, *transport_, bases);
    graph.run(bases, boxes);
  }

  enum class Stage : std::uint8_t { interpreted, quick, done };
  static constexpr double endless = 1e300;

  void add_tasks(std::unique_ptr<ProgramTasks> tasks) const {
    current_.store(tasks.get(), std::memory_order_release);
    tasks_.push_back(std::move(tasks));  // a run of the one before may still go on
  }

  void choose_budget() {
    for (const Step& s : program_->steps) {
      const auto* const loop = std::get_if<Loop>(&s.body);
      if (loop != nullptr)
        compile_ns_ +=
            compile_kernel_ns + compile_instruction_ns * static_cast<double>(loop->kernel->code.size());
    }
    compile_ns_ += compile_product_ns * works_.coded_products();
    cost_of_run_ = works_.interpreted_ns();
    const bool never = compile_ns_ == 0 || codegen_mode() == CodegenMode::off;
    if (never) stage_ = Stage::done;
    budget_ = never ? endless : compile_ns_;
    next_budget_ = compile_ns_;
  }

  /// The budget is spent. At once the full tier where a single run costs as much.
  void spend() const {
    const bool large = cost_of_run_ > full_factor * compile_ns_;
    compile(large || stage_.load(std::memory_order_relaxed) == Stage::quick ? CodeTier::full
                                                                            : CodeTier::quick);
  }

  void compile(CodeTier tier) const {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;  // somebody else is at it
    if (stage_.load(std::memory_order_relaxed) == Stage::done) return budget_.store(endless);
    auto code = CompiledWork::make(works_, tier);
    if (!code) {
      stage_ = Stage::done;
      budget_ = endless;
      return;
    }
    const bool done = tier == CodeTier::full && code->complete();
    add_tasks(std::make_unique<ProgramTasks>(std::move(code)));
    stage_ = done ? Stage::done : Stage::quick;
    // Generated code costs a fraction of the interpreter, and its tiers differ by a quarter. What failed in the full tier
    // is tried again less and less often.
    next_budget_ *= full_factor;
    budget_ = done ? endless : 2 * next_budget_;
  }

  std::shared_ptr<const Program> program_;
  std::shared_ptr<const LocalPart> part_;  // null: one process has the whole program
  Transport* transport_;
  WorkList works_;
  mutable std::mutex mutex_;  // held while compiling
  mutable std::vector<std::unique_ptr<ProgramTasks>> tasks_;
  mutable std::atomic<const ProgramTasks*> current_{nullptr};
  mutable std::atomic<Stage> stage_{Stage::interpreted};
  mutable std::atomic<double> budget_{0};    // nanoseconds of what code would replace, until the next tier
  mutable double next_budget_ = 0;           // under the mutex
  double cost_of_run_ = 0, compile_ns_ = 0;  // of what code would replace; of the quick tier
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

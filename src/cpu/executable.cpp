#include "cpu/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "cpu/address.h"
#include "cpu/code_store.h"
#include "cpu/exchange.h"
#include "cpu/externs.h"
#include "cpu/gemm.h"
#include "cpu/interpreter.h"
#include "runtime/task_graph.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

constexpr double chunk_ns = 10'000;           // a task this long pays for its 100 ns
constexpr std::int64_t chunks_per_item = 32;  // enough for the workers of a large machine

// Under this a call's own cost counts: extents and strides become part of the code.
constexpr double small_loop_ns = 1000;

// What compiling takes in the quick tier: LLVM selects instructions one by one. The full tier takes four times that.
constexpr double compile_kernel_ns = 300'000, compile_instruction_ns = 15'000, full_factor = 4;

/// n elements of `size` bytes from `r` on.
MemoryRange range(const Ref& r, std::int64_t n, std::size_t size) {
  return {r.base, r.offset, r.offset + static_cast<std::uint64_t>(n) * size};
}

/// The bytes from the first to the last element of `batch` matrices, `stride` apart, of rows `ld` apart.
MemoryRange matrix_range(const Ref& r, std::int64_t rows, std::int64_t cols, std::int64_t ld,
                         std::int64_t batch, std::int64_t stride, std::size_t size) {
  if (rows == 0 || cols == 0 || batch == 0) return {r.base, r.offset, r.offset};
  return range(r, (batch - 1) * stride + (rows - 1) * ld + cols, size);
}

/// An item of a Loop step with its machine code.
struct CompiledLoop {
  LoopNest nest;
  MachineCode code;
  void run(void* const* bases, std::int64_t begin, std::int64_t end) const {
    nest.run(code.function, bases, begin, end);
  }
  std::int64_t units() const { return nest.units(); }
  double cost_ns() const { return nest.cost_ns(); }
};

/// An item of a Gemm step with its machine code; without: the plan runs it.
struct CompiledGemm {
  Ref a, b, c;
  MachineCode code;
  void run(void* const* bases, std::int64_t begin, std::int64_t end) const {
    void* const args[] = {address(bases, a), address(bases, b), address(bases, c)};
    const std::int64_t box[] = {begin, end};
    code.function(args, nullptr, box);
  }
};
/// One entry for each item of the program's Loop and Gemm steps, in order.
struct CompiledSteps {
  std::deque<CompiledLoop> loops;
  std::deque<CompiledGemm> gemms;
};

/// What is the same however loops are run; tasks point to the plans.
struct FixedPlans {
  std::deque<GemmPlan> gemms;
  std::deque<ExternPlan> externs;
  std::vector<std::unique_ptr<Communication>> exchanges;
};

/// One way to run the program.
class ProgramTasks {
 public:
  /// The first one makes the fixed plans, later ones use them.
  ProgramTasks(const Program& program, FixedPlans& plans) : program_(program), plans_(plans) {}

  /// Nothing compiled: loops are interpreted.
  void build(CompiledSteps compiled) {
    compiled_ = std::move(compiled);
    for (const Step& step : program_.steps) {
      std::visit([&](const auto& body) { add(body); }, step.body);
    }
    graph_.finish();
  }
  void run(void* const* bases) const { graph_.run(bases); }
  /// Of the interpreted loops.
  double loop_ns() const { return loop_ns_; }

 private:
  using Ranges = std::vector<MemoryRange>;

  /// Adds units [begin, end) of `plan` in chunks.
  template <class Plan>
  void add_units(const Plan& plan, std::int64_t begin, std::int64_t end, double cost_ns, const Ranges& reads,
                 const Ranges& writes) {
    if (begin >= end) return;
    check(reads);
    check(writes);
    const auto by_cost = static_cast<std::int64_t>(std::min(cost_ns / chunk_ns, 1e6));
    const std::int64_t units = end - begin,
                       chunks = std::clamp<std::int64_t>(by_cost, 1, std::min(units, chunks_per_item));
    std::vector<Task> tasks;
    for (std::int64_t c = 0; c < chunks; c++) {
      const auto run = [](const void* p, void* const* bases, std::int64_t b, std::int64_t e) {
        static_cast<const Plan*>(p)->run(bases, b, e);
      };
      tasks.push_back({run, &plan, begin + units * c / chunks, begin + units * (c + 1) / chunks,
                       cost_ns / static_cast<double>(chunks)});
    }
    graph_.add(tasks, reads, writes);
  }

  /// The next plan of a kind: made now, or by the first build.
  template <class Plan, class... Args>
  const Plan& next(std::deque<Plan>& all, std::size_t& at, const Args&... args) {
    if (at == all.size()) all.emplace_back(args...);
    return all[at++];
  }

  void add(const Loop& loop) {
    for (const Loop::Item& item : loop.items) {
      Ranges reads, writes;
      for (std::size_t k = 0; k < item.args.size(); k++) {
        const LoopArg& a = item.args[k];
        const std::uint64_t lo = a.ref.offset - a.first;
        (loop.kernel->args[k].output ? writes : reads).push_back({a.ref.base, lo, lo + a.bytes});
      }
      const CompiledLoop* const compiled =
          next_loop_ < compiled_.loops.size() ? &compiled_.loops[next_loop_++] : nullptr;
      if (compiled && compiled->nest.has_points()) {
        add_units(*compiled, 0, compiled->units(), compiled->cost_ns(), reads, writes);
      } else {  // without points too: a sum of nothing is written
        const LoopPlan& plan = loops_.emplace_back(loop.kernel, item);
        add_units(plan, 0, plan.units(), plan.cost_ns(), reads, writes);
        loop_ns_ += plan.cost_ns();
      }
    }
  }

  void add(const Gemm& gemm) {
    const std::size_t size = itemsize(gemm.dtype);
    for (const Gemm::Item& i : gemm.items) {
      const CompiledGemm* const compiled =
          next_gemm_ < compiled_.gemms.size() ? &compiled_.gemms[next_gemm_] : nullptr;
      const GemmPlan& plan = next(plans_.gemms, next_gemm_, gemm, i);
      const Ranges reads = {
          matrix_range(i.a, i.ta ? i.k : i.m, i.ta ? i.m : i.k, i.lda, i.batch, i.stride_a, size),
          matrix_range(i.b, i.tb ? i.n : i.k, i.tb ? i.k : i.n, i.ldb, i.batch, i.stride_b, size)};
      const Ranges writes = {matrix_range(i.c, i.m, i.n, i.ldc, i.batch, i.stride_c, size)};
      if (compiled && compiled->code.function)
        add_units(*compiled, 0, plan.units(), plan.cost_ns(), reads, writes);
      else add_units(plan, 0, plan.units(), plan.cost_ns(), reads, writes);
    }
  }

  void add(const Extern& x) {
    for (const Extern::Item& i : x.items) {
      Ranges reads, writes;
      for (std::size_t k = 0; k < i.in.size(); k++)
        reads.push_back(range(i.in[k], num_elements(i.in_shapes[k]), itemsize(x.in_types[k])));
      for (std::size_t k = 0; k < i.out.size(); k++) {
        writes.push_back(range(i.out[k], num_elements(i.out_shapes[k]), itemsize(x.out_types[k])));
      }
      const ExternPlan& plan = next(plans_.externs, next_extern_, x, i);
      add_units(plan, 0, plan.units(), plan.cost_ns(), reads, writes);
    }
  }

  void add(const Exchange& x) {
    for (const Exchange::Item& i : x.items) {
      Ranges reads;
      for (const Exchange::Piece& p : i.pieces) {
        for (const Exchange::Source& s : p.sources) {
          const std::uint64_t lo = s.ref.offset - s.first;
          reads.push_back({s.ref.base, lo, lo + s.tile_bytes});
        }
      }
      const Ranges writes = {{i.dst.base, i.dst.offset, i.dst.offset + i.dst_bytes}};
      if (next_exchange_ == plans_.exchanges.size())
        plans_.exchanges.push_back(memory_transport().plan(x, i, program_.base_count));
      const Communication& plan = *plans_.exchanges[next_exchange_++];
      const std::int64_t filled = plan.fill_units(), units = plan.units();
      const double cost = plan.cost_ns(0, units);
      if (filled > 0 && cost > 2 * chunk_ns) {  // else one task does both, in order
        add_units(plan, 0, filled, plan.cost_ns(0, filled), {}, writes);
        add_units(plan, filled, units, plan.cost_ns(filled, units), reads, writes);
      } else if (filled > 0) {
        add_units(plan, 0, units, std::min(cost, chunk_ns), reads, writes);
      } else {
        add_units(plan, 0, units, cost, reads, writes);
      }
    }
  }

  void check(const Ranges& ranges) const {
    for (const MemoryRange& r : ranges) {
      if (r.base < program_.base_count && r.lo <= r.hi) continue;
      throw InternalError(fmt::format(
          "load: a step touches bytes [{}, {}) of base {}, the program has {} bases. Addresses must stand in "
          "one of them. Please report this.",
          r.lo, r.hi, r.base, program_.base_count));
    }
  }

  const Program& program_;
  FixedPlans& plans_;
  std::deque<LoopPlan> loops_;
  CompiledSteps compiled_;
  std::size_t next_loop_ = 0, next_gemm_ = 0, next_extern_ = 0, next_exchange_ = 0;
  double loop_ns_ = 0;
  TaskGraph graph_;
};

class CpuExecutable final : public Executable {
 public:
  explicit CpuExecutable(std::shared_ptr<const Program> program) : program_(std::move(program)) {
    add_tasks({});
    choose_budget();
    if (codegen_mode() == CodegenMode::always) compile(CodeTier::quick);
  }

  void prepare() const override {
    if (stage_.load(std::memory_order_relaxed) != Stage::interpreted) return;
    budget_ = std::min(budget_.load(std::memory_order_relaxed), 0.1 * compile_ns_);
  }

  void run(std::span<void* const> bases, RunReport* report) const override {
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
    if (program_->transfers.empty()) return tasks.run(bases.data());
    // One more base: where exchanges count what they move.
    constexpr std::size_t small = 256;
    void* on_stack[small];
    std::vector<void*> on_heap(bases.size() < small ? 0 : bases.size() + 1);
    void** const all = on_heap.empty() ? on_stack : on_heap.data();
    std::copy(bases.begin(), bases.end(), all);
    all[bases.size()] = report != nullptr ? report->received.data() : nullptr;
    tasks.run(all);
  }

 private:
  enum class Stage : std::uint8_t { interpreted, quick, done };
  static constexpr double endless = 1e300;

  void add_tasks(CompiledSteps compiled) const {
    auto tasks = std::make_unique<ProgramTasks>(*program_, plans_);
    tasks->build(std::move(compiled));
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
    cost_of_run_ = tasks_.front()->loop_ns();
    const bool never = compile_ns_ == 0 || codegen_mode() == CodegenMode::off;
    if (never) stage_ = Stage::done;
    budget_ = never ? endless : compile_ns_;
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
    CompiledSteps steps;
    if (!generate(tier, steps)) {
      stage_ = Stage::done;
      budget_ = endless;
      return;
    }
    add_tasks(std::move(steps));
    stage_ = tier == CodeTier::full ? Stage::done : Stage::quick;
    // Generated code costs a fraction of the interpreter, and its tiers differ by a quarter.
    budget_ = tier == CodeTier::full ? endless : 2 * full_factor * compile_ns_;
  }

  bool generate(CodeTier tier, CompiledSteps& steps) const {
    std::vector<CodeSpec> specs;
    std::vector<MachineCode*> to;
    for (const Step& s : program_->steps) {
      const auto* const loop = std::get_if<Loop>(&s.body);
      if (loop == nullptr) continue;
      for (const Loop::Item& item : loop->items) {
        CompiledLoop& l = steps.loops.emplace_back(CompiledLoop{LoopNest(loop->kernel, item), {}});
        if (!l.nest.has_points()) continue;
        if (l.nest.cost_ns() < small_loop_ns) l.nest.fix_numbers();
        specs.emplace_back(l.nest.spec());
        to.push_back(&l.code);
      }
    }
    for (const GemmPlan& plan : plans_.gemms) {
      CompiledGemm& g =
          steps.gemms.emplace_back(CompiledGemm{plan.item().a, plan.item().b, plan.item().c, {}});
      if (auto spec = plan.spec()) {
        specs.emplace_back(*spec);
        to.push_back(&g.code);
      }
    }
    auto code = try_compile(specs, tier);
    if (!code) return false;
    for (std::size_t k = 0; k < to.size(); k++) *to[k] = std::move((*code)[k]);
    return true;
  }

  std::shared_ptr<const Program> program_;
  mutable FixedPlans plans_;
  mutable std::mutex mutex_;  // held while compiling
  mutable std::vector<std::unique_ptr<ProgramTasks>> tasks_;
  mutable std::atomic<const ProgramTasks*> current_{nullptr};
  mutable std::atomic<Stage> stage_{Stage::interpreted};
  mutable std::atomic<double> budget_{0};    // nanoseconds of interpreted loops until the next tier
  double cost_of_run_ = 0, compile_ns_ = 0;  // of the interpreted loops; of the quick tier
};

}  // namespace

std::unique_ptr<Executable> make_cpu_executable(std::shared_ptr<const Program> program) {
  return std::make_unique<CpuExecutable>(std::move(program));
}

}  // namespace shardarray

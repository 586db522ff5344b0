// WorkList: a program's items as the task graph takes them: each with the memory it touches and a plan that runs it.
#pragma once
#include <deque>
#include <span>
#include <variant>
#include <vector>

#include "cpu/called_program.h"
#include "cpu/exchange/exchange.h"
#include "cpu/library/library_call.h"
#include "cpu/loops/interpreter.h"
#include "cpu/products/gemm.h"
#include "runtime/local_part.h"
#include "runtime/step_ranges.h"
#include "runtime/task_graph.h"

namespace shardarray {

struct Work {
  MemoryRanges reads, writes;
  Task units;  ///< all units; they may be split anywhere
  /// If units walk every range of so many elements once, front to back, or read a single element: the number of elements, and per unit.
  /// Else one of them is 0.
  std::int64_t elements = 0, grain = 0;
  std::int64_t least_units = 1;  ///< per chunk
  const Loop* loop = nullptr;
  const Loop::Item* item = nullptr;  ///< of the loop
  const GemmPlan* gemm = nullptr;
  const LibraryCall* library = nullptr;
  const LibraryCall::Item* library_item = nullptr;
  const Exchange* exchange = nullptr;
  const Exchange::Item* exchange_item = nullptr;
  using Calls =
      std::variant<std::monostate, const CalledProgram*, const ChosenProgram*, const RepeatedProgram*>;
  Calls calls = {};
  double interpreted_ns = 0;  ///< what generated code would replace
  std::int64_t box = -1;      ///< replaces the units: the number of a box that moves between processes

  /// Also touches what `w` touches.
  void add_ranges(const Work& w) {
    reads.insert(reads.end(), w.reads.begin(), w.reads.end());
    writes.insert(writes.end(), w.writes.begin(), w.writes.end());
  }
};

/// The length at which a task pays for its 100 ns overhead: longer work is split.
inline constexpr double chunk_ns = 10'000;

/// Units [begin, end) of something with run().
template <class Plan> Task task_of(const Plan& plan, std::int64_t begin, std::int64_t end, double cost_ns) {
  const auto run = [](const void* p, void* const* bases, std::int64_t b, std::int64_t e) {
    static_cast<const Plan*>(p)->run(bases, b, e);
  };
  return {run, &plan, begin, end, cost_ns};
}
/// All units of something that also has units() and cost_ns().
template <class Plan> Task all_units(const Plan& plan) {
  return task_of(plan, 0, plan.units(), plan.cost_ns());
}

/// A program's works in order, run by the interpreter and by plans that need no generated code. The program must outlive them.
class WorkList {
 public:
  /// `boxes`: of LocalPart; they and those of called programs use `transport`. Throws CompileError if the CPU has no kernel, InternalError
  /// for addresses outside of the program's bases.
  explicit WorkList(const Program& program, std::span<const PartBox> boxes = {},
                    Transport* transport = nullptr);
  WorkList(const WorkList&) = delete;
  WorkList& operator=(const WorkList&) = delete;
  const std::vector<Work>& all() const { return all_; }
  /// Lower bases are scratch: not read after the program.
  std::uint32_t scratch_bases() const { return scratch_bases_; }
  /// Time of one run in the interpreter, in products that may be worth generated code, and in calls of programs.
  double interpreted_ns() const { return interpreted_ns_; }
  double calls_ns() const { return calls_ns_; }

 private:
  void add(const Loop& loop);
  void add(const Gemm& gemm);
  void add(const LibraryCall& call);
  void add(const Exchange& x);
  void add(const PartBox& box, std::int64_t number);
  void add(const ProgramCall& call);
  void add(const ProgramChoice& choice);
  void add(const ProgramLoop& loop);
  Work& append(ItemRanges ranges, Task units);
  template <class Plan> void append_call(ItemRanges ranges, const Plan& plan, const ProgramCall& call);
  void may_be_code(Work& work, double ns);

  /// Keeps one order in all processes: of calls that communicate, and of boxes before and after them.
  MemoryRange turn() const { return {base_count_, 0, 1}; }

  std::uint32_t base_count_, scratch_bases_;
  Transport* transport_;
  bool takes_turns_;
  std::vector<Work> all_;
  std::deque<LoopPlan> loops_;
  std::deque<GemmPlan> gemms_;
  std::deque<LibraryPlan> library_calls_;
  std::deque<ExchangePlan> exchanges_;
  std::deque<CalledProgram> called_;
  std::deque<ChosenProgram> chosen_;
  std::deque<RepeatedProgram> repeated_;
  double interpreted_ns_ = 0, calls_ns_ = 0;
};

}  // namespace shardarray

// WorkList: a program's items as the task graph takes them, each with the memory that it touches and a plan that runs it.
#pragma once
#include <deque>
#include <span>
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
  Task units;  ///< all of them; they may be cut anywhere
  /// Where every range is so many elements that units walk once, front to back, or one element that is only read: their number
  /// and how many a unit takes. Else one of them is 0.
  std::int64_t elements = 0, grain = 0;
  std::int64_t least_units = 1;  ///< of a chunk
  const Loop* loop = nullptr;
  const Loop::Item* item = nullptr;  ///< of the loop
  const GemmPlan* gemm = nullptr;
  std::int64_t box = -1;  ///< in place of units: the number of a box that moves between processes

  /// Touches what `w` touches as well.
  void add_ranges(const Work& w) {
    reads.insert(reads.end(), w.reads.begin(), w.reads.end());
    writes.insert(writes.end(), w.writes.begin(), w.writes.end());
  }
};

/// A task this long pays for its 100 ns: longer work is cut.
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

/// The works of a program in order, run by the interpreter and by what needs no code. The program outlives them.
class WorkList {
 public:
  /// `boxes`: of LocalPart; they go by `transport`, as those of called programs do. Throws CompileError for what the CPU has no kernel for, InternalError for addresses outside of the
  /// program's bases.
  explicit WorkList(const Program& program, std::span<const PartBox> boxes = {},
                    Transport* transport = nullptr);
  WorkList(const WorkList&) = delete;
  WorkList& operator=(const WorkList&) = delete;
  const std::vector<Work>& all() const { return all_; }
  /// Bases below are scratch: nothing there is read after the program.
  std::uint32_t scratch_bases() const { return scratch_bases_; }
  /// What one run takes in the interpreter and, where code of their own is worth it, in products.
  double interpreted_ns() const { return interpreted_ns_; }

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
  void append_call(ItemRanges ranges, Task units, const ProgramCall& call);

  /// In one order in all processes: calls that send something, boxes before them, boxes behind them.
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
  double interpreted_ns_ = 0;
};

}  // namespace shardarray

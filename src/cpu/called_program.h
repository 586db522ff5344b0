// Programs called by a step of another program: a fixed number of times, one of several, or while another program says so.
#pragma once
#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cpu/executable.h"
#include "runtime/program.h"

namespace shardarray {

class WorkList;

/// One item of a ProgramCall: one unit. The steps of its runs are shared among free workers.
class CalledProgram {
 public:
  /// bases[counters] points to the bytes received so far, as in ExchangePlan; read if the called program has transfers. `transport`: to the
  /// other processes, for a part.
  CalledProgram(const ProgramCall& call, const ProgramCall::Item& item, std::uint32_t counters,
                Transport* transport)
      : call_(call),
        item_(item),
        counters_(counters),
        program_(call.part ? make_cpu_executable(call.part, *transport) : make_cpu_executable(call.program)) {
    for (std::size_t k = 0; k < item.bases.size(); k++)
      if (item.bases[k].stride != 0) moving_.emplace_back(k, item.bases[k].stride);
  }
  void run(void* const* bases, std::int64_t begin, std::int64_t end) const;
  /// Run after run, whose addresses differ by strides and by carries that alternate between two buffers. The first has its own.
  class Runs {
   public:
    Runs(const CalledProgram& of, void* const* bases);
    void next();

   private:
    const CalledProgram& of_;
    void* const* bases_;
    std::int64_t number_ = 0;
    std::vector<void*> addresses_[3];  // of the next even run, the next odd one, the first
  };
  /// Only the first run. `mine`: room for its bases.
  void run_once(void* const* bases, std::vector<void*>& mine) const;
  std::int64_t units() const { return 1; }
  double cost_ns() const { return program_->cost_ns() * static_cast<double>(call_.trip); }
  const ProgramCall& call() const { return call_; }
  const ProgramCall::Item& item() const { return item_; }
  const WorkList& works() const { return program_->works(); }
  /// Whether it runs without other processes and counts no transfers, so that its works are all there is to do.
  bool is_plain() const { return !call_.part && call_.program->transfers.empty(); }
  /// What its calls, and those in it, cost besides its works.
  double calls_ns() const;

 private:
  void run_at(void* const* bases, std::span<void* const> mine) const;

  const ProgramCall& call_;
  const ProgramCall::Item& item_;
  std::uint32_t counters_;
  std::unique_ptr<CpuExecutable> program_;
  std::vector<std::pair<std::size_t, std::int64_t>> moving_;  // bases with a stride
};

/// One item of a ProgramChoice: one unit, which runs one branch.
class ChosenProgram {
 public:
  ChosenProgram(const ProgramChoice& choice, const ProgramChoice::Item& item, std::uint32_t counters,
                Transport* transport);
  /// Throws InternalError if there is no branch of that number.
  void run(void* const* bases, std::int64_t begin, std::int64_t end) const;
  std::int64_t units() const { return 1; }
  double cost_ns() const;
  const ProgramChoice::Item& item() const { return item_; }
  const std::deque<CalledProgram>& branches() const { return branches_; }
  double calls_ns() const;

 private:
  const ProgramChoice::Item& item_;
  std::deque<CalledProgram> branches_;
};

/// One item of a ProgramLoop: one unit.
class RepeatedProgram {
 public:
  RepeatedProgram(const ProgramLoop& loop, const ProgramLoop::Item& item, std::uint32_t counters,
                  Transport* transport)
      : item_(item),
        condition_(loop.condition(), loop.condition().items[0], counters, transport),
        body_(loop.body(), loop.body().items[0], counters, transport) {}
  void run(void* const* bases, std::int64_t begin, std::int64_t end) const;
  std::int64_t units() const { return 1; }
  /// The number of runs is unknown.
  static constexpr double likely_runs = 8;
  double cost_ns() const { return likely_runs * (condition_.cost_ns() + body_.cost_ns()); }
  const ProgramLoop::Item& item() const { return item_; }
  const CalledProgram& condition() const { return condition_; }
  const CalledProgram& body() const { return body_; }
  double calls_ns() const { return likely_runs * (condition_.calls_ns() + body_.calls_ns()); }

 private:
  const ProgramLoop::Item& item_;
  CalledProgram condition_, body_;
};

}  // namespace shardarray

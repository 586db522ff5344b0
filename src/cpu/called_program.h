// A program that is called by a step of another one.
#pragma once
#include <memory>

#include "cpu/executable.h"
#include "runtime/program.h"

namespace shardarray {

/// One item of a ProgramCall: one unit. Its runs share their steps out among the workers that are free.
class CalledProgram {
 public:
  /// bases[counters] points to the bytes received so far, as in ExchangePlan; it is read where the called program has transfers.
  CalledProgram(const ProgramCall& call, const ProgramCall::Item& item, std::uint32_t counters)
      : call_(call), item_(item), counters_(counters), program_(make_cpu_executable(call.program)) {}
  void run(void* const* bases, std::int64_t begin, std::int64_t end) const;
  std::int64_t units() const { return 1; }
  double cost_ns() const { return program_->cost_ns() * static_cast<double>(call_.trip); }

 private:
  const ProgramCall& call_;
  const ProgramCall::Item& item_;
  std::uint32_t counters_;
  std::unique_ptr<CpuExecutable> program_;
};

}  // namespace shardarray

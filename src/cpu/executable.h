// A program ready to run on the CPU: a task graph of plans. It starts in the interpreter and switches to generated code when that pays; the
// bits stay the same.
#pragma once
#include <memory>

#include "runtime/backend.h"
#include "runtime/local_part.h"
#include "runtime/transport.h"

namespace shardarray {

class WorkList;

class CpuExecutable : public Executable {
 public:
  /// Of one run, in its current tier.
  virtual double cost_ns() const = 0;
  virtual const WorkList& works() const = 0;
};
std::unique_ptr<CpuExecutable> make_cpu_executable(std::shared_ptr<const Program> program);
/// Its boxes use `transport`, which must outlive it.
std::unique_ptr<CpuExecutable> make_cpu_executable(std::shared_ptr<const LocalPart> part,
                                                   Transport& transport);

}  // namespace shardarray

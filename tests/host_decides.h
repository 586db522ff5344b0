// Programs in which the host decides, while they run, what runs next.
#pragma once
#include "runtime/program.h"

namespace shardarray::testing {

/// True where the program, or one that it calls, has a branch or a loop of unknown length.
inline bool host_decides(const Program& p) {
  for (const Step& step : p.steps) {
    if (std::holds_alternative<ProgramChoice>(step.body) || std::holds_alternative<ProgramLoop>(step.body))
      return true;
    const auto* const call = std::get_if<ProgramCall>(&step.body);
    if (call != nullptr && host_decides(*call->program)) return true;
  }
  return false;
}

}  // namespace shardarray::testing

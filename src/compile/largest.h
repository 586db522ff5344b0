// The largest memories of the busiest device at the peak of its temporaries, for explain() and out-of-memory errors.
#pragma once
#include <vector>

#include "compile/scratch_plan.h"

namespace shardarray {

/// Fills Compiled::largest. `outputs`: the local values of the program's results; `temporary`: memories with their own place in the arenas.
void find_largest(const Partition& p, const Fusion& f, Addresses& at, const std::vector<int>& outputs,
                  const Lives& temporary, const Program& program, Compiled& out);

}  // namespace shardarray

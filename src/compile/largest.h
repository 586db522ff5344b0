// The largest things that the device which holds most has when its temporary values take most: for explain and for what is out of memory.
#pragma once
#include <vector>

#include "compile/scratch_plan.h"

namespace shardarray {

/// Fills Compiled::largest. `outputs`: the local values that are the program's results; `temporary`: what has its own place in the arenas.
void find_largest(const Partition& p, const Fusion& f, Addresses& at, const std::vector<int>& outputs,
                  const Lives& temporary, const Program& program, Compiled& out);

}  // namespace shardarray

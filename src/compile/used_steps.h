// Removes dead steps from a partition.
#pragma once
#include "compile/passes.h"

namespace shardarray {

/// Without dead steps, such as a constraint's copy if a nearer copy was read instead.
Partition used_steps(Partition p, const FlatGraph& g);

}  // namespace shardarray

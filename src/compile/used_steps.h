// A partition without the steps that nobody uses.
#pragma once
#include "compile/passes.h"

namespace shardarray {

/// Without dead steps, such as a copy of a constraint where a nearer copy was read instead.
Partition used_steps(Partition p, const FlatGraph& g);

}  // namespace shardarray

// Sums of partial sums of several nodes, such as gradients of micro-batches: if they are added before they are combined, they move once.
// Nodes are placed one by one, so each would combine its own.
#pragma once
#include <vector>

#include "compile/node_facts.h"
#include "compile/sub_axis_list.h"

namespace shardarray {

/// Preferences for further trials, for one set of axes per trial: all summands of such sums, and what is made of them until they are added,
/// are partial sums over these axes, and sharded along the others as in `by`. Empty if there is no such sum.
std::vector<Preferences> shared_sums(const Preferences& by, const FlatGraph& g,
                                     const Propagation& propagation, const NodeFacts& facts);

}  // namespace shardarray

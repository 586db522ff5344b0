// Sums of what several nodes leave as partial sums, as gradients of micro-batches are: added up before they are combined, they move once.
// Nodes are placed one by one, so that each combines its own.
#pragma once
#include <vector>

#include "compile/node_facts.h"
#include "compile/sub_axis_list.h"

namespace shardarray {

/// Preferences for further trials, each time for other axes: all summands of such sums, and what is made of them until they are
/// added up, are partial sums over these and cut by the others as `by` has them. None: no value is such a sum.
std::vector<Preferences> shared_sums(const Preferences& by, const FlatGraph& g,
                                     const Propagation& propagation, const NodeFacts& facts);

}  // namespace shardarray

// Values that several nodes read, each with its own transfers: one copy for all of them may cost less. Nodes are placed one by one, so none
// makes a copy for the sake of later ones.
#pragma once
#include <vector>

#include "compile/partitioner.h"

namespace shardarray {

/// Copies that nodes may count on in further trials, of one kind per trial: replicated, then less sharded. Of values for whose readers more
/// moves in trial `t` than a tile; only if that may save more than `worth`.
std::vector<Copies> shared_copies(const Trial& t, double worth, const FlatGraph& g, const NodeFacts& facts,
                                  StrategySearch& search);

}  // namespace shardarray

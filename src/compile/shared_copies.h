// Values that several nodes read, each of which moves something: a copy that all of them read may cost less than all that. Nodes are placed
// one by one, so that none brings a copy for the sake of those behind it.
#pragma once
#include <vector>

#include "compile/partitioner.h"

namespace shardarray {

/// Copies that nodes may count on in further trials, each time of another kind: whole, then less cut. Of values for whose readers more
/// moves in trial `t` than a tile of them; where that may save more than `worth`.
std::vector<Copies> shared_copies(const Trial& t, double worth, const FlatGraph& g, const NodeFacts& facts,
                                  StrategySearch& search);

}  // namespace shardarray

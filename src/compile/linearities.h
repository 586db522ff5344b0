// How a node depends on its operands, numbers of the graph considered.
#pragma once
#include <vector>

#include "graph/flat.h"

namespace shardarray {

/// The float constant that all elements of v are; NaN: it is none.
double literal(int v, const FlatGraph& g);
/// Per operand.
std::vector<Linear> linearities(const FlatNode& n, const FlatGraph& g);

}  // namespace shardarray

// How a node depends on its operands, numbers of the graph considered.
#pragma once
#include <vector>

#include "compile/passes.h"

namespace shardarray {

/// The float constant that all elements of v are, 0 of any dtype; NaN: it is none.
double literal(int v, const FlatGraph& g);
/// Per operand. `summands_asked`: of the call.
std::vector<Linear> linearities(const FlatNode& n, const FlatGraph& g, bool summands_asked);

/// By result: where summands of it are asked for; null: nowhere.
std::vector<const Layout*> asked_summands(const SubAxes& sub_axes, const Preferences& p, const FlatNode& n);
/// By value: whether the program asks for summands of it, or of what is linear in it.
std::vector<bool> wanted_summands(const FlatGraph& g, const Preferences& preferences);

}  // namespace shardarray

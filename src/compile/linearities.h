// How a node depends on its operands, literals taken into account.
#pragma once
#include <vector>

#include "compile/passes.h"

namespace shardarray {

/// The float constant that all elements of v equal, or a 0 of any dtype; NaN: none.
double literal(int v, const FlatGraph& g);
/// Per operand. `summands_asked`: of the call.
std::vector<Linear> linearities(const FlatNode& n, const FlatGraph& g, bool summands_asked);

/// By result: the layout in which its summands are requested; null: none.
std::vector<const Layout*> asked_summands(const SubAxes& sub_axes, const Preferences& p, const FlatNode& n);
/// By value: whether the program requests summands of it, or of something linear in it.
std::vector<bool> wanted_summands(const FlatGraph& g, const Preferences& preferences);

}  // namespace shardarray

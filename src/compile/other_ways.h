// What else a node could be given: for messages and explain().
#pragma once
#include <string>

#include "compile/strategy.h"

namespace shardarray {

/// Instead of the operands as `d` has them: a line for each way that needs no axis in parts, `\n  112 B: reshard(operand 1,
/// NamedSharding(mesh, P("x")))`, by what the planner would take next; three at most.
std::string other_ways(NodeState s, const Strategy& d, StrategySearch& search, const CompileInput& in);

/// `moves 56 B by sums over {x}; next best 112 B by operand 0 as [{}, {x}]`; "" where nothing moves, or there is no other way.
std::string runner_up(NodeState s, const Strategy& d, StrategySearch& search, const CompileInput& in);

}  // namespace shardarray

// What else a node could be given: for messages and explain().
#pragma once
#include <string>

#include "compile/strategy.h"

namespace shardarray {

/// Instead of the operands as `d` has them: a line for each way that needs no axis in parts and nothing of neighbours,
/// `\n  112 B by all_to_all: reshard(operand 1, NamedSharding(mesh, P("x")))`, by what the planner would take next; three at most. With
/// times on a described machine: `\n  112 B, 9.01 us by all_to_all: ..`.
std::string other_ways(NodeState s, const Strategy& d, StrategySearch& search, const CompileInput& in);

/// `56 B by sums over {x}` and `112 B by operand 0 as [{}, {x}]`; both "" where nothing moves, or there is no other way.
struct RunnerUp {
  std::string taken, next;
};
RunnerUp runner_up(NodeState s, const Strategy& d, StrategySearch& search, const CompileInput& in);

}  // namespace shardarray

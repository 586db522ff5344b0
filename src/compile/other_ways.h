// Alternatives for the operands of a node: for messages and explain().
#pragma once
#include <string>

#include "compile/strategy.h"

namespace shardarray {

/// Alternatives to the operand layouts of `d`, three at most, in the planner's order: a line for each that splits no mesh axis and needs
/// nothing from neighbours, `\n  112 B by all_to_all: reshard(operand 1, NamedSharding(mesh, P("x")))`. With times on a described machine:
/// `\n  112 B, 9.01 us by all_to_all: ..`.
std::string other_ways(NodeState s, const Strategy& d, StrategySearch& search, const CompileInput& in);

/// `56 B by sums over {x}` and `112 B by operand 0 as [{}, {x}]`; both empty if nothing moves or there is no alternative.
struct RunnerUp {
  std::string taken, next;
};
RunnerUp runner_up(NodeState s, const Strategy& d, StrategySearch& search, const CompileInput& in);

}  // namespace shardarray

// One way to place all nodes of a program.
#pragma once
#include "compile/node_facts.h"
#include "compile/spelled_layouts.h"
#include "compile/strategy.h"

namespace shardarray {

/// By flat value: where else it is than where it was made; null: nowhere. Empty: none is.
using Copies = std::vector<const Layout*>;

struct Trial {
  Partition partition;
  GraphTail tail;   ///< of its program, behind the graph: what combines cut scans with their carries
  double work = 0;  ///< the price of what is computed
  std::vector<const Layout*>
      needed;  ///< by flat value: where all needed it that use it; null: in several places, or nowhere
  std::vector<int> decided;   ///< nodes that had a choice, those for which something moves first
  std::vector<double> moved;  ///< by node: the price of what moves for it
};
/// How a program is placed.
struct Placing {
  const Preferences* preferences;
  StrategySearch* search;
  SpelledLayouts* spelled;
  std::vector<int> detours = {};  ///< nodes that take the next best strategy; twice: the one behind that
  Copies copies = {};  ///< that nodes count on, as if they were there: the first that reads one brings it
  bool tells = false;  ///< notes of what moves something name the next best way
};
/// In the order of the program, each node by its cheapest strategy for the preferences. `g` is as it was: its tail is the trial's.
Trial place_nodes(FlatGraph& g, const CompileInput& in, const Propagation& propagation,
                  const NodeFacts& facts, const Placing& how);

}  // namespace shardarray

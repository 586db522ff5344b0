// One placement of all nodes of a program.
#pragma once
#include "compile/node_facts.h"
#include "compile/spelled_layouts.h"
#include "compile/strategy.h"

namespace shardarray {

/// By flat value: a second layout in which it exists; null: none. Empty: none for all values.
using Copies = std::vector<const Layout*>;

struct Trial {
  Partition partition;
  GraphTail tail;   ///< of its program, behind the graph: combines sharded scans with their carries
  double work = 0;  ///< the price of what is computed
  std::vector<const Layout*>
      needed;                 ///< by flat value: the layout that all its users needed; null: several, or none
  std::vector<int> decided;   ///< nodes that had a choice; first those for which something moves
  std::vector<double> moved;  ///< by node: the price of what moves for it
};
/// How a program is placed.
struct Placing {
  const Preferences* preferences;
  StrategySearch* search;
  SpelledLayouts* spelled;
  std::vector<int> detours = {};  ///< nodes that take the second-best strategy; named twice: the third-best
  Copies copies = {};  ///< that nodes count on, as if they existed: the first that reads one makes it
  bool tells = false;  ///< notes name the second-best strategy of nodes that move something
};
/// In program order, each node by its cheapest strategy for the preferences. `g` is restored: its new tail is in the trial.
Trial place_nodes(FlatGraph& g, const CompileInput& in, const Propagation& propagation,
                  const NodeFacts& facts, const Placing& how);

}  // namespace shardarray

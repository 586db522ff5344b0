// One way to place all nodes of a program.
#pragma once
#include "compile/making.h"
#include "compile/strategy.h"
#include "compile/uses.h"

namespace shardarray {

struct Trial {
  Partition partition;
  double work = 0;  ///< the price of what is computed
  std::vector<const Layout*>
      needed;  ///< by flat value: where all needed it that use it; null: in several places, or nowhere
  std::vector<int> decided;  ///< nodes that had a choice, those for which something moves first
};
/// How a program is placed.
struct Placing {
  const Preferences* preferences;
  StrategySearch* search;
  std::vector<int> detours = {};  ///< nodes that take the next best strategy; twice: the one behind that
  bool tells = false;             ///< notes of what moves something name the next best way
};
/// In the order of the program, each node by its cheapest strategy for the preferences. Cut scans append what combines them with their
/// carries to `g`.
Trial place_nodes(FlatGraph& g, const CompileInput& in, const Propagation& propagation,
                  const std::vector<Making>& makings, const Uses& uses, const Placing& how);

}  // namespace shardarray

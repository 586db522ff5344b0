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
};
/// In the order of the program, each node by its cheapest strategy for `preferences`. Cut scans append what combines them with their
/// carries to `g`. `tells`: notes of what moves something name the next best way.
Trial place_nodes(FlatGraph& g, const CompileInput& in, const Propagation& propagation,
                  const std::vector<Making>& makings, const Uses& uses, const Preferences& preferences,
                  StrategySearch& search, bool tells);

}  // namespace shardarray

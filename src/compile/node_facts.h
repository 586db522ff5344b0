// What placing asks of the nodes of a program again and again, found once.
#pragma once
#include "compile/making.h"
#include "compile/uses.h"

namespace shardarray {

struct NodeFacts {
  NodeFacts(const FlatGraph& g, const Propagation& propagation);

  std::vector<Making> makings;  ///< by node
  Uses uses;
  std::vector<bool> wanted;                 ///< by value: as summands, see wanted_summands()
  std::vector<std::vector<Linear>> linear;  ///< by node: per operand
  /// By node. Layers of a network that look alike have equal numbers: what their places cost depends on nothing but the places.
  std::vector<int> kinds;
};

}  // namespace shardarray

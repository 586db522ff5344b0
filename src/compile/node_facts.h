// What placement needs to know of a program's nodes again and again, found once.
#pragma once
#include "compile/making.h"
#include "compile/uses.h"

namespace shardarray {

struct NodeFacts {
  NodeFacts(const FlatGraph& g, const Propagation& propagation);

  std::vector<Making> makings;  ///< by node
  Uses uses;
  std::vector<bool> wanted;                 ///< by value: requested as summands, see wanted_summands()
  std::vector<std::vector<Linear>> linear;  ///< by node: per operand
  /// By node. Similar layers of a network have equal numbers: their cost depends on layouts alone.
  std::vector<int> kinds;
};

}  // namespace shardarray

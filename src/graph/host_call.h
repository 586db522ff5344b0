// A function of the host that is called with the values of arrays: prints and callbacks inside traced functions.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/key.h"
#include "graph/region.h"
#include "shardarray/debug.h"

namespace shardarray {

struct HostCall {
  HostFunction function;
  /// One call for all rows of a vmap instead of one for each.
  bool whole_vmap = false;
  /// Called once a compilation, with the shape of its operand, all rows of the maps included, and where that lies.
  std::function<void(const Shape&, const Sharding&)> inspect = nullptr;
  /// The maps it was recorded in, innermost first; each put a leading dimension on those operands that it maps.
  struct Level {
    std::shared_ptr<const Axis> axis;
    std::vector<bool> mapped;
  };
  std::vector<Level> levels = {};
  std::uint64_t id = unique_id();
};

class Node;
/// Runs the call of an effect node whose operands can be computed. In execute/.
void run_effect(const Node& n);

}  // namespace shardarray

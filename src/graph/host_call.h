// A host function that is called with array values: prints and callbacks inside traced functions.
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
  /// One call for all rows of a vmap instead of one per row.
  bool whole_vmap = false;
  /// Called once per compilation, with the operand's shape, including all mapped dimensions, and its sharding.
  std::function<void(const Shape&, const Sharding&)> inspect = nullptr;
  /// The enclosing maps, innermost first; each added a leading dimension to its mapped operands.
  struct Level {
    std::shared_ptr<const Axis> axis;
    std::vector<bool> mapped;
  };
  std::vector<Level> levels = {};
  std::uint64_t id = unique_id();
};

class Node;
/// Runs an effect node whose operands can be computed. In execute/.
void run_effect(const Node& n);

}  // namespace shardarray

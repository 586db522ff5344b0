// Calls host functions with computed values.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "graph/host_call.h"
#include "graph/value.h"

namespace shardarray {

/// A host call, and the types of its operands.
struct HostEffect {
  std::shared_ptr<const HostCall> call;
  std::vector<Type> types;
};
/// Calls them in order, each once, or for each row of the maps around it. `operands`: those of all calls, concatenated. `inspects`:
/// inspectors are called as well.
void run_effects(std::span<const HostEffect> effects, std::span<const ValueRef> operands, bool inspects);

}  // namespace shardarray

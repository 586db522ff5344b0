// Calls of host functions with values that were computed.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "graph/host_call.h"
#include "graph/value.h"

namespace shardarray {

/// What acts on the host with some values of these types.
struct HostEffect {
  std::shared_ptr<const HostCall> call;
  std::vector<Type> types;
};
/// Calls them in their order, each once, or for each row of the maps it stood in. Their operands stand one behind the other.
/// `inspects`: inspectors are called as well.
void run_effects(std::span<const HostEffect> effects, std::span<const ValueRef> operands, bool inspects);

}  // namespace shardarray

// Calls of host functions with values that were computed.
#pragma once
#include "graph/host_call.h"
#include "graph/value.h"

namespace shardarray {

/// Calls it with the values of its operands: once, or for each row of the maps it stood in.
void run_host_call(const HostCall& call, std::span<const Type> types, std::span<const ValueRef> values);

}  // namespace shardarray

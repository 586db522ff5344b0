// Effects of traced functions: recorded with the trace, run after the program.
#pragma once
#include "graph/host_call.h"
#include "graph/value.h"
#include "transform/trace.h"

namespace shardarray {

/// Records the call in the open trace; outside of all, runs it.
void add_host_call(HostCall call, Arrays operands, Where w);
/// Runs the call of an effect node whose operands can be computed.
void run_effect(const Node& n);
/// Calls it with the values of its operands: once, or for each row of the maps it stood in.
void run_host_call(const HostCall& call, std::span<const Type> types, std::span<const ValueRef> values);

}  // namespace shardarray

// Effects of traced functions, recorded with the trace.
#pragma once
#include "graph/host_call.h"
#include "transform/trace.h"

namespace shardarray {

/// Records the call in the open trace; without one, runs it.
void add_host_call(HostCall call, Arrays operands, Where w);

}  // namespace shardarray

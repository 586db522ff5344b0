// The live ranges of memories.
#pragma once
#include <map>
#include <vector>

#include "compile/addresses.h"

namespace shardarray {

/// The first and the last group that use a memory.
struct Life {
  int first = -1, last = -1;
};
using Lives = std::map<int, Life>;

/// Of all memories: inputs live from the beginning (-1), results to the end. Adds the arenas of called programs to the memories of `at`.
Lives lives_of(const Partition& p, const Fusion& f, const std::vector<GroupKernel>& kernels, Addresses& at);

}  // namespace shardarray

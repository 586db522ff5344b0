// When the groups of a program use each memory.
#pragma once
#include <map>
#include <vector>

#include "compile/addresses.h"

namespace shardarray {

/// Of a memory: the groups that use it first and last.
struct Life {
  int first = -1, last = -1;
};
using Lives = std::map<int, Life>;

/// Of all memories: inputs live from the beginning (-1), results until the end. The arenas of programs that groups call become memories
/// of `at`.
Lives lives_of(const Partition& p, const Fusion& f, const std::vector<GroupKernel>& kernels, Addresses& at);

}  // namespace shardarray

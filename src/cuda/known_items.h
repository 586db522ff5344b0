// The numbers of a launch's items as text, for a whole program's kernel (kernels/known_items.cuh).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/launch.h"

namespace shardarray::cuda {

/// The first `count` bases are arenas in the block's shared memory, `bytes` apart. 0: none known.
struct KnownArenas {
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
};

/// A struct `name` with the numbers of items [first, first + count) of a loop, of products or of moves. Empty for other launches, and if
/// the items differ in more than their operands' addresses.
std::string known_items(const KernelLaunch& l, std::uint32_t first, std::uint32_t count,
                        const KnownArenas& arenas, const std::string& name);

}  // namespace shardarray::cuda

// The numbers of a launch's items as text, for the kernel of a whole program (kernels/known_items.cuh).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/launch.h"

namespace shardarray::cuda {

/// The first bases are arenas in the block's shared memory, so many bytes apart. 0: nothing is known of them.
struct KnownArenas {
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
};

/// A struct `name` of the numbers of a loop, of products or of moves; of the items from `first` on, `count`. Empty where these differ
/// in more than where their operands are, and of other launches.
std::string known_items(const KernelLaunch& l, std::uint32_t first, std::uint32_t count,
                        const KnownArenas& arenas, const std::string& name);

}  // namespace shardarray::cuda

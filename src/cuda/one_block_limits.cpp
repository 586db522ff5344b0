#include "cuda/one_block.h"

namespace shardarray::cuda {

const OneBlockLimits& one_block_limits() {
  static constexpr OneBlockLimits limits;
  return limits;
}

}  // namespace shardarray::cuda

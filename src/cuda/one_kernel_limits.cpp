#include "cuda/one_kernel.h"

namespace shardarray::cuda {

const OneKernelLimits& one_kernel_limits() {
  static constexpr OneKernelLimits limits;
  return limits;
}

}  // namespace shardarray::cuda

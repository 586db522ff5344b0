// The hand-written kernels, for nvcc: no contraction or approximations, --expt-relaxed-constexpr (for numeric_limits), and warnings as
// errors, because nvcc only warns when device code calls a host function.
#include "kernels/conv.cuh"
#include "kernels/exchange.cuh"
#include "kernels/gemm_tiles.cuh"
#include "kernels/interpreter.cuh"
#include "kernels/pairs.cuh"
#include "kernels/parts.cuh"
#include "kernels/scan.cuh"
#include "kernels/scan_tiles.cuh"
#include "kernels/scatter.cuh"
#include "kernels/sort.cuh"
#include "kernels/update.cuh"

namespace shardarray {

#define SHARDARRAY_KERNEL(name, text, together)                                          \
  extern "C" __global__ void name(const std::byte* table, std::byte* scratch,            \
                                  const __grid_constant__ device::Bases bases) {         \
    device::wait_for_kernel_before(table);                                               \
    const device::Grid grid{blockIdx.x, gridDim.x, blockIdx.y, threadIdx.x, blockDim.x}; \
    text(grid, table, scratch, bases);                                                   \
  }
#define SHARDARRAY_BLOCK_KERNEL(name, text, together, blocks)                                         \
  extern "C" __global__ void __launch_bounds__(together, blocks)                                      \
      name(const std::byte* table, std::byte* scratch, const __grid_constant__ device::Bases bases) { \
    device::wait_for_kernel_before(table);                                                            \
    const device::Grid grid{blockIdx.x, gridDim.x, blockIdx.y, threadIdx.x, blockDim.x};              \
    text(grid, table, scratch, bases);                                                                \
  }
#include "kernels/list.inc"

}  // namespace shardarray

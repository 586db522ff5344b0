// The hand-written kernels, for nvcc.
#include "kernels/interpreter.cuh"

#define SHARDARRAY_KERNEL(name, text, together)                                                      \
  extern "C" __global__ void name(const std::byte* table, std::byte* scratch,                        \
                                  const __grid_constant__ shardarray::device::Bases bases) {         \
    const shardarray::device::Grid grid{blockIdx.x, gridDim.x, blockIdx.y, threadIdx.x, blockDim.x}; \
    shardarray::device::text(grid, table, scratch, bases);                                           \
  }
#include "kernels/list.inc"

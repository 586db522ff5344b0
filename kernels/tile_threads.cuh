// Thread blocks that share memory: on the device all threads run the text; on the host one call is a block, and a region is a loop over its
// threads.
#pragma once
#include "kernels/device.cuh"

namespace shardarray::device {

inline constexpr std::uint32_t tile_threads = 256;  // threads per block, always

#ifdef __CUDACC__
/// Runs the following statement for each thread of the block. Threads of one region do not synchronize.
#define SHARDARRAY_TILE_THREADS(thread) if (const std::uint32_t thread = threadIdx.x; true)
#define SHARDARRAY_SYNC_TILE() __syncthreads()
inline constexpr std::uint32_t tile_threads_here = 1;  // threads whose values a thread holds
#else
#define SHARDARRAY_TILE_THREADS(thread) for (std::uint32_t thread = 0; thread < tile_threads; thread++)
#define SHARDARRAY_SYNC_TILE() static_cast<void>(0)
inline constexpr std::uint32_t tile_threads_here = tile_threads;
#endif

}  // namespace shardarray::device

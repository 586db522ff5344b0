// Blocks of threads that share memory: on the device all of them run the text; on the host a call of it is a block, and a region is a
// loop over its threads.
#pragma once
#include "kernels/device.cuh"

namespace shardarray::device {

inline constexpr std::uint32_t tile_threads = 256;  // of a block, always

#ifdef __CUDACC__
/// Runs the statement behind it for the threads of the block. Threads of one region do not wait for each other.
#define SHARDARRAY_TILE_THREADS(thread) if (const std::uint32_t thread = threadIdx.x; true)
#define SHARDARRAY_SYNC_TILE() __syncthreads()
inline constexpr std::uint32_t tile_threads_here = 1;  // whose values a thread holds
#else
#define SHARDARRAY_TILE_THREADS(thread) for (std::uint32_t thread = 0; thread < tile_threads; thread++)
#define SHARDARRAY_SYNC_TILE() static_cast<void>(0)
inline constexpr std::uint32_t tile_threads_here = tile_threads;
#endif

}  // namespace shardarray::device

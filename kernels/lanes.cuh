// A warp: 32 lanes that work on one outer point. On the device a lane is a thread; on the host a region is a loop over the lanes.
#pragma once
#include "kernels/device.cuh"

namespace shardarray::device {

inline constexpr std::uint32_t warp_lanes = 32;

#ifdef __CUDACC__
/// Runs the following statement for each lane of the warp. Lanes of one region do not synchronize.
#define SHARDARRAY_LANES(lane) if (const std::uint32_t lane = threadIdx.x % warp_lanes; true)
/// Between regions: makes the writes of all lanes visible to the next region.
#define SHARDARRAY_SYNC_LANES() __syncwarp()
inline constexpr std::uint32_t lanes_here = 1;  // lanes whose values a thread holds
#else
#define SHARDARRAY_LANES(lane) for (std::uint32_t lane = 0; lane < warp_lanes; lane++)
#define SHARDARRAY_SYNC_LANES() static_cast<void>(0)
inline constexpr std::uint32_t lanes_here = warp_lanes;
#endif

/// Sums lanes whose distance is a multiple of `apart`, pairwise, l[i] += l[i + 16], ...: the first `apart` lanes get the sums.
template <class T> SHARDARRAY_DEVICE inline void add_lanes(T (&x)[lanes_here], std::uint32_t apart = 1) {
#ifdef __CUDACC__
  for (unsigned width = warp_lanes / 2; width >= apart; width /= 2)
    x[0] += __shfl_down_sync(0xffffffff, x[0], width);
#else
  for (std::uint32_t width = warp_lanes / 2; width >= apart; width /= 2)
    for (std::uint32_t i = 0; i < width; i++) x[i] += x[i + width];
#endif
}

}  // namespace shardarray::device

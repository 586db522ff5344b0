// The kernels of kernels/ compiled for the host: for tests and for the fake device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cuda/pair_sort.h"
#include "kernels/device.cuh"

namespace shardarray::cuda {

/// Runs one block of a launch. The grid's `thread` is not read; pointers and bases are addresses of this process.
using HostKernel = void (*)(const device::Grid& grid, const std::byte* table, std::byte* scratch,
                            const device::Bases& bases);
/// By the name in the fatbin; null: there is none.
HostKernel host_kernel(std::string_view name);
/// What CUB does, with pairs in memory of this process.
void sort_pairs_on_host(const PairSort& sort, std::byte* memory);

}  // namespace shardarray::cuda

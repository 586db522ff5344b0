// The kernels of kernels/ compiled for the host: for tests and for the fake device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cuda/pair_sort.h"
#include "kernels/device.cuh"

namespace shardarray::cuda {

/// Runs one block of a launch. The grid's `thread` is ignored; pointers and bases are host addresses.
using HostKernel = void (*)(const device::Grid& grid, const std::byte* table, std::byte* scratch,
                            const device::Bases& bases);
/// By its name in the fatbin; null: unknown.
HostKernel host_kernel(std::string_view name);
/// CUB's sort, of pairs in host memory.
void sort_pairs_on_host(const PairSort& sort, std::byte* memory);

}  // namespace shardarray::cuda

// Launches run on the host: what the tests of CUDA's kernels share.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/host_kernels.h"
#include "cuda/launch.h"

namespace shardarray::test {

/// How the blocks of a launch are run: whatever the grid and the order, the bits are the same.
struct BlockOrder {
  std::uint32_t blocks = 0, threads = 0;  ///< 0: as the launch says
  bool backwards = false, many_bases = false;
};
inline constexpr BlockOrder block_orders[] = {{}, {3, 32, true, true}, {1, 64, false, true}};

/// Runs launches on memory of this process.
inline void run_launches(const std::vector<cuda::Launch>& launches, const std::vector<void*>& bases,
                         const BlockOrder& order) {
  std::vector<std::uint64_t> all;
  for (void* const p : bases) all.push_back(reinterpret_cast<std::uint64_t>(p));
  device::Bases given{};
  const bool many = order.many_bases || all.size() > device::few_bases;
  if (many) given.many = all.data();
  else std::copy(all.begin(), all.end(), given.few);
  std::size_t scratch_bytes = 0;
  for (const cuda::Launch& l : launches) scratch_bytes = std::max(scratch_bytes, l.scratch_bytes);
  // Fresh memory of a device holds anything.
  std::vector<std::uint64_t> scratch(scratch_bytes / 8 + 1, ~std::uint64_t{0});
  for (const cuda::Launch& l : launches) {
    const cuda::HostKernel kernel = cuda::host_kernel(l.kernel);
    REQUIRE_MESSAGE((kernel != nullptr), l.kernel);
    std::vector<std::uint64_t> table(l.table.size() / 8 + 1);
    std::memcpy(table.data(), l.table.data(), l.table.size());
    const std::uint32_t blocks = order.blocks ? order.blocks : l.blocks;
    const std::uint32_t count = blocks * l.items;
    for (std::uint32_t k = 0; k < count; k++) {
      const std::uint32_t at = order.backwards ? count - 1 - k : k;
      const device::Grid grid{at % blocks, blocks, at / blocks, 0, order.threads ? order.threads : l.threads};
      kernel(grid, reinterpret_cast<const std::byte*>(table.data()),
             reinterpret_cast<std::byte*>(scratch.data()), given);
    }
  }
}

/// The launches of a program of one step.
template <class Body> std::vector<cuda::Launch> launches_of_step(Body body) {
  Program p;
  p.steps.push_back({std::move(body), "a step", {}});
  return cuda::launches_of(p);
}

}  // namespace shardarray::test

// A launch on the fake GPU.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "cuda/driver.h"
#include "cuda/host_kernels.h"
#include "fake_calls.h"

namespace shardarray::testing {

/// What a launch read from its arguments, with addresses of the device.
struct FakeLaunch {
  cuda::HostKernel kernel;
  cuda::Grid grid;
  const std::byte* table;
  std::byte* scratch;
  device::Bases bases;
  std::vector<std::uint64_t> program_bases;  // in place of these: device::Bases with a list of another length

  void run() const {
    if (!program_bases.empty()) {
      std::vector<std::uint64_t> all = program_bases;
      for (std::uint64_t& b : all) b &= ~std::uint64_t{FakeBlocks::tag};
      return kernel({0, grid.blocks, 0, 0, grid.threads}, FakeBlocks::host(table), FakeBlocks::host(scratch),
                    *reinterpret_cast<const device::Bases*>(all.data()));
    }
    device::Bases here = bases;
    for (std::uint64_t& b : here.few) b &= ~std::uint64_t{FakeBlocks::tag};
    std::vector<std::uint64_t> many;  // how many is not known here: as far as the block goes
    if (here.many != nullptr) {
      const std::uint64_t* const first = FakeBlocks::host(here.many);
      many.assign(first, first + fake_device_blocks().rest(here.many) / sizeof *first);
      for (std::uint64_t& b : many) b &= ~std::uint64_t{FakeBlocks::tag};
      here.many = many.data();
    }
    // No order of blocks is promised: every other launch runs backwards.
    static std::atomic<bool> turn = false;
    const bool backwards = turn.exchange(!turn);
    const std::uint64_t all = std::uint64_t{grid.blocks} * grid.items;
    for (std::uint64_t k = 0; k < all; k++) {
      const std::uint64_t at = backwards ? all - 1 - k : k;
      kernel({static_cast<std::uint32_t>(at % grid.blocks), grid.blocks,
              static_cast<std::uint32_t>(at / grid.blocks), 0, grid.threads},
             FakeBlocks::host(table), FakeBlocks::host(scratch), here);
    }
  }
};

}  // namespace shardarray::testing

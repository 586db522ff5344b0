// An exchange between GPUs that cannot read each other's memory: what each packs, sends, receives and delivers.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/program.h"

namespace shardarray::cuda {

struct SplitExchange {
  /// All boxes for, or from, one other GPU, contiguous.
  struct Block {
    int gpu = 0;
    std::uint64_t offset = 0, bytes = 0;  ///< in the staging memory
  };
  struct Part {
    Exchange packed;     ///< into the staging memory
    Exchange delivered;  ///< from there and from the GPU's own tiles, once everything has arrived
    std::vector<Block> sent, received;
    std::uint64_t staging_bytes = 0;
  };
  std::vector<Part> parts;  // by GPU
};
/// `gpu_of`: by device, among `gpus` GPUs. `staging`: the base of each GPU's staging memory. A piece's sources are combined in the given
/// order, whichever GPU they are on. A box that several items of a GPU need is sent once.
SplitExchange split_exchange(const Exchange& x, std::span<const int> gpu_of, int gpus, std::uint32_t staging);

}  // namespace shardarray::cuda

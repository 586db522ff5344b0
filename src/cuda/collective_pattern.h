// Exchanges that are exactly one of NCCL's collectives.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cuda/communicator.h"
#include "runtime/program.h"

namespace shardarray::cuda {

struct CollectivePattern {
  using Kind = NcclCall::Kind;
  struct Rank {
    int gpu = 0;
    Ref send, receive;
    bool operator==(const Rank& o) const;
  };
  Kind kind = Kind::all_reduce;
  int type = 0, reduction = 0;            ///< the library's numbers
  std::size_t count = 0;                  ///< elements: of a tile; that a rank sends; that a rank receives
  std::size_t bytes = 0;                  ///< the same
  std::vector<std::vector<Rank>> groups;  ///< that do the same beside each other; by ascending GPUs
};

/// One tile in a row on each of `gpus` GPUs, more than one to a group, whose ranks are ascending GPUs. Reductions are those of which
/// NCCL makes what the program says: of integers all, of floats sums and products, in whatever order unless the exchange has a fixed
/// one - of two summands there is only one. Its extrema of floats lose NaN. `gpu_of`: by device.
std::optional<CollectivePattern> collective_pattern(const Exchange& x, std::span<const int> gpu_of, int gpus);

}  // namespace shardarray::cuda

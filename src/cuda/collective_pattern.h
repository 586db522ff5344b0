// Exchanges that match exactly one NCCL collective.
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
  int type = 0, reduction = 0;            ///< NCCL's enum values
  std::size_t count = 0;                  ///< elements of a tile; that a rank sends; that a rank receives
  std::size_t bytes = 0;                  ///< the same in bytes
  std::vector<std::vector<Rank>> groups;  ///< that do the same concurrently; each by ascending GPUs
};

/// One contiguous tile per GPU, in groups of more than one GPU, ranks by ascending GPU. Only reductions that NCCL computes as the program
/// defines them: all of integers; sums and products of floats, in any order, or with a fixed order only of two summands. NCCL's float min
/// and max lose NaN. `gpu_of`: by device.
std::optional<CollectivePattern> collective_pattern(const Exchange& x, std::span<const int> gpu_of, int gpus);

}  // namespace shardarray::cuda

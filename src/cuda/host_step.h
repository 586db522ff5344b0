// A step without kernels, such as a matrix factorization: the host runs it between launches, with the CPU backend.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cuda/gpu.h"
#include "cuda/gpu_steps.h"
#include "runtime/platforms.h"

namespace shardarray::cuda {

class HostStep {
 public:
  /// Null if the step has kernels.
  static std::unique_ptr<HostStep> of(HostBackend host, const GpuPlaces& where, const Step& step);
  /// Waits for the operands, reads them and computes; returns when the results are on their way.
  void ask(std::span<Turn* const> turns, std::span<void* const> bases) const;

 private:
  HostStep(Backend& host, const GpuPlaces& where, const Step& step);
  /// A tile at `there` on a GPU, and at offset `here` in the host's memory.
  struct Tile {
    std::size_t gpu;
    Ref there;
    std::uint64_t here, bytes;
  };
  Tile tile(std::size_t gpu, const Ref& there, DType t, const Shape& shape);

  Backend& host_;
  std::uint64_t bytes_ = 0;
  std::vector<Tile> in_, out_;
  std::unique_ptr<Executable> work_;
};

}  // namespace shardarray::cuda

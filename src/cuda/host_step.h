// A step for which there are no kernels, as factorisations of matrices: the host does it between launches, by the CPU's backend.
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
  /// Null where kernels do the step.
  static std::unique_ptr<HostStep> of(HostBackend host, const GpuPlaces& where, const Step& step);
  /// Returns when the results are on their way: it waits for the operands, which are read, and computes.
  void ask(std::span<Turn* const> turns, std::span<void* const> bases) const;

 private:
  HostStep(Backend& host, const GpuPlaces& where, const Step& step);
  /// What lies at `there` on a GPU, and `here` bytes behind the beginning of the host's memory.
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

// A step over several GPUs: what each of them does of it, where they wait for each other, what NCCL does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/communicator.h"
#include "cuda/gpu.h"
#include "runtime/program.h"

namespace shardarray::cuda {

/// Where a program's devices are.
struct GpuPlaces {
  std::vector<Gpu*> gpus;      // by ascending numbers, each once
  std::vector<int> of_device;  // places in `gpus`; -1: another process has the device
  bool reach = true;           // all of them read each other's memory
};

/// What NCCL does of a step, with addresses of a run.
class NcclStep {
 public:
  struct Call {
    NcclCall call;
    std::size_t gpu = 0;  // of the program's
    Ref from, to;
  };
  NcclStep(std::string step, std::vector<Call> calls) : step_(std::move(step)), calls_(std::move(calls)) {}
  const std::string& step() const { return step_; }
  /// `staging`: of each GPU; the base behind `bases`.
  void ask(std::span<Turn* const> turns, std::span<void* const> bases, std::span<void* const> staging) const;

 private:
  std::string step_;  // for messages
  std::vector<Call> calls_;
};

struct GpuSteps {
  std::vector<Step> of_gpu;        // by GPU
  bool meets = false;              // some GPU reads what others made: before and after it all wait for all
  std::unique_ptr<NcclStep> nccl;  // in their place
};
/// One after the other. `staging`: the base of staging memory, of which a step needs some of `staging_bytes` of each GPU: they grow.
/// Throws DeviceError where the GPUs cannot read each other's memory, and there is no NCCL.
std::vector<GpuSteps> gpu_steps(const Step& step, const GpuPlaces& where, std::uint32_t staging,
                                std::vector<std::uint64_t>& staging_bytes);

}  // namespace shardarray::cuda

// A step over several GPUs: each GPU's share, where they wait for each other, and what NCCL does.
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

/// The GPUs of a program's devices.
struct GpuPlaces {
  std::vector<Gpu*> gpus;      // by ascending number, each once
  std::vector<int> of_device;  // index in `gpus`; -1: the device belongs to another process
  bool reach = true;           // all of them can read each other's memory
};

/// A step's NCCL calls, with addresses relative to a run's bases.
class NcclStep {
 public:
  struct Call {
    NcclCall call;
    std::size_t gpu = 0;  // index among the program's GPUs
    Ref from, to;
  };
  NcclStep(std::string step, std::vector<Call> calls) : step_(std::move(step)), calls_(std::move(calls)) {}
  const std::string& step() const { return step_; }
  /// `staging`: by GPU; its base follows `bases`.
  void ask(std::span<Turn* const> turns, std::span<void* const> bases, std::span<void* const> staging) const;

 private:
  std::string step_;  // for messages
  std::vector<Call> calls_;
};

struct GpuSteps {
  std::vector<Step> of_gpu;        // by GPU
  bool meets = false;              // GPUs read others' data: all synchronize before and after
  std::unique_ptr<NcclStep> nccl;  // replaces of_gpu
};
/// In order. `staging`: the base of staging memory; the step adds what it needs per GPU to `staging_bytes`. Throws DeviceError if the GPUs
/// cannot read each other's memory and there is no NCCL.
std::vector<GpuSteps> gpu_steps(const Step& step, const GpuPlaces& where, std::uint32_t staging,
                                std::vector<std::uint64_t>& staging_bytes);

}  // namespace shardarray::cuda

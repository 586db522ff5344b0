// Transfers between processes: before a step, boxes are sent and received, by NCCL or through host memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cuda/gpu.h"
#include "cuda/gpu_steps.h"
#include "cuda/part_boxes.h"
#include "cuda/shared_run.h"
#include "runtime/local_part.h"
#include "runtime/platforms.h"

namespace shardarray::cuda {

class Crossing {
 public:
  /// `boxes`: those of a part that move before one step; sends first, then receives.
  Crossing(HostBackend host, const GpuPlaces& where, const Program& program, std::span<const PartBox> boxes);
  /// The step that needs the boxes, for messages.
  const std::string& step() const { return step_; }
  /// Through host memory it returns when received boxes are on their way to the GPUs, and sent ones have been taken.
  void ask(std::span<Turn* const> turns, std::span<void* const> bases, SharedRun& run) const;

 private:
  void ask_host(std::span<Turn* const> turns, std::span<void* const> bases, SharedRun& run) const;
  void ask_nccl(std::span<Turn* const> turns, std::span<void* const> bases, SharedRun& run) const;
  struct Box {
    PartBox box;
    std::size_t gpu = 0;
    std::uint64_t here = 0;  // offset in the host's memory
  };
  static std::byte* place(const Box& b, std::span<void* const> bases) {
    return static_cast<std::byte*>(bases[b.box.ref.base]) + b.box.ref.offset;
  }
  Backend& host_;
  std::vector<Box> boxes_;
  std::uint64_t bytes_ = 0;
  std::string step_;
};

}  // namespace shardarray::cuda

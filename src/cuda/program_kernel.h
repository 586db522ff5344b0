// The single kernel of a program of little work, whose separate launches run until it is compiled and loaded.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/backend.h"
#include "cuda/printed_kernels.h"
#include "runtime/program.h"

namespace shardarray::cuda {

class ProgramKernel final : public PrintedKernels {
 public:
  /// Null if the program is not to be one kernel, or no printed kernels are wanted. `alignment`: bytes that all its bases are multiples of.
  static std::shared_ptr<ProgramKernel> of(CudaBackend& backend, Gpu& gpu,
                                           std::shared_ptr<const Program> program, std::uint64_t alignment);

  /// It does the runs from now on; false: they are launched step by step.
  bool is_ready() const { return ready_.load(std::memory_order_acquire); }
  /// A run's memory beside the program's; null: none.
  BufferRef take_scratch() const;
  /// A run, as one launch; `steps` are named in failures.
  void ask(Turn& turn, std::span<void* const> bases, const BufferRef& scratch,
           const std::string& steps) const;

 private:
  void build() override;
  ProgramKernel(CudaBackend& backend, Gpu& gpu, std::shared_ptr<const Program> program,
                std::uint64_t alignment, std::uint32_t blocks)
      : PrintedKernels("Programs of little work are launched step by step on CUDA devices."),
        backend_(backend),
        gpu_(gpu),
        program_(std::move(program)),
        alignment_(alignment),
        blocks_(blocks) {}

  CudaBackend& backend_;
  Gpu& gpu_;
  const std::shared_ptr<const Program> program_;
  const std::uint64_t alignment_;
  const std::uint32_t blocks_;
  // Written by build():
  KernelHandle kernel_ = nullptr;
  BufferRef tables_;
  std::size_t scratch_bytes_ = 0, bases_ = 0;
  std::atomic<bool> ready_ = false;
};

}  // namespace shardarray::cuda

// The printed kernels of a program's loops, whose interpreting kernels run until these are compiled and loaded.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "cuda/launch.h"
#include "cuda/printed_kernels.h"

namespace shardarray::cuda {

class PrintedLoops final : public PrintedKernels {
 public:
  /// For a program's launches on a GPU; null if none is a loop.
  static std::shared_ptr<PrintedLoops> of(Gpu& gpu, const std::vector<KernelLaunch>& launches);

  /// By launch, null for other launches than loops; null until all of them can be launched.
  const std::vector<KernelHandle>* kernels() const { return ready_.load(std::memory_order_acquire); }

 private:
  void build() override;
  struct Loop {
    std::size_t launch;
    std::shared_ptr<const Kernel> kernel;
    LoopShape shape;
  };
  PrintedLoops(Gpu& gpu, std::size_t launches)
      : PrintedKernels("Loops on CUDA devices run in the interpreter."), gpu_(gpu), kernels_(launches) {}

  Gpu& gpu_;
  std::vector<Loop> loops_;
  std::vector<KernelHandle> kernels_;
  std::atomic<const std::vector<KernelHandle>*> ready_{nullptr};
};

}  // namespace shardarray::cuda

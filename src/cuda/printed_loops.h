// The printed kernels of a program: its interpreting kernels run until these are compiled and loaded.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cuda/gpu.h"
#include "cuda/launch.h"

namespace shardarray::cuda {

class PrintedLoops {
 public:
  /// Of a program's launches on a GPU; null where none is a loop.
  static std::shared_ptr<PrintedLoops> of(Gpu& gpu, const std::vector<Launch>& launches);

  /// By launch, null for what is no loop; null until all of them can be launched.
  const std::vector<KernelHandle>* kernels() const { return ready_.load(std::memory_order_acquire); }
  /// Prints, compiles (or finds on the disk) and loads all of them; once, by one thread. Throws CompileError, DeviceError.
  void build();

 private:
  struct Loop {
    std::size_t launch;
    std::shared_ptr<const Kernel> kernel;
    LoopShape shape;
  };
  PrintedLoops(Gpu& gpu, std::size_t launches) : gpu_(gpu), kernels_(launches) {}

  Gpu& gpu_;
  std::vector<Loop> loops_;
  std::vector<KernelHandle> kernels_;
  std::atomic<const std::vector<KernelHandle>*> ready_{nullptr};
};

/// Builds them on a thread of its own, one program after the other. A program that is gone by then is left out.
void build_later(const std::shared_ptr<PrintedLoops>& loops);
/// Builds them now. What cannot be built stays with the interpreting kernels, which is said once on stderr.
void build_now(PrintedLoops& loops);

}  // namespace shardarray::cuda

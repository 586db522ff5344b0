// A program's launches on one of its GPUs, with the device memory they need.
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/backend.h"
#include "cuda/gpu.h"
#include "cuda/launch.h"
#include "cuda/printed_loops.h"
#include "cuda/product_algorithms.h"
#include "kernels/device.cuh"

namespace shardarray::cuda {

class GpuLaunches {
 public:
  /// `launches` call no programs. `staging`: bytes of staging memory, whose base follows the program's; 0: none.
  GpuLaunches(CudaBackend& backend, Gpu& gpu, std::vector<KernelLaunch> launches, std::size_t bases,
              std::uint64_t staging = 0);

  Gpu& gpu() const { return gpu_; }
  /// What a run's launches need beside the program's memory.
  struct Workspace {
    BufferRef scratch, addresses, operands, staging;
  };
  Workspace take_workspace() const;
  /// The addresses of a run for its kernels; those that are read from device memory are on their way there.
  device::Bases bind(Turn& turn, std::span<void* const> bases, const Workspace& w) const;
  /// Enqueues launches [first, last). `operand`: how many pointer-array addresses of this run calls have used so far.
  void ask(Turn& turn, std::size_t first, std::size_t last, std::span<void* const> bases,
           const device::Bases& bound, const Workspace& w, std::size_t& operand) const;

  /// Prints kernels for loops once they have run often enough.
  void print_loops() const {
    if (printed_) printed_->begin();
  }
  /// Counts a run: after enough of them printed kernels are built.
  void count_run() const {
    if (printed_) printed_->count_run();
  }
  /// As if all but one of the runs needed had been counted.
  void expect_runs() const {
    if (printed_) printed_->expect_runs();
  }
  bool has_printed() const { return printed_ != nullptr && printed_->kernels() != nullptr; }
  /// Nodes of their graph.
  std::int64_t graph_nodes() const;
  /// Whether runs need memory beside the program's.
  bool needs_workspace() const { return scratch_bytes_ > 0 || staging_bytes_ > 0; }
  /// Whether all addresses are in the kernel arguments.
  bool self_contained() const { return base_count_ <= device::few_bases && operands_.empty(); }
  bool only_kernels() const;
  /// Calls f(number, kernel, grid, arguments) for each launch that uses a base for which `is_changed` holds.
  template <class Changed, class F>
  void for_changed(const Changed& is_changed, const device::Bases& bound, const Workspace& w,
                   const F& f) const {
    const std::vector<KernelHandle>* const printed = printed_ ? printed_->kernels() : nullptr;
    for (std::size_t k = 0; k < launches_.size(); k++) {
      const Ready& l = launches_[k];
      if (std::none_of(l.bases.begin(), l.bases.end(), is_changed)) continue;
      Arguments arguments = arguments_of(l.table, bound, w);
      f(k, kernel_of(k, printed), grid_of(k, printed), arguments.addresses().data());
    }
  }

 private:
  struct Sum {
    KernelHandle kernel = nullptr;
    Grid grid;
    std::size_t table = 0;  // as in Ready
  };
  struct Ready {
    KernelHandle kernel = nullptr;  // hand-written
    Grid grid, printed_grid;
    std::size_t table = 0;  // offset in tables_
    std::string step;
    std::vector<std::uint32_t> bases;    // as in KernelLaunch
    std::vector<ReadyProduct> products;  // replace the kernel, if any
    std::vector<Sum> sums;               // of the parts of each product; no kernel if not split
    bool done = false;                   // fused into the previous products
    PairSort sort;                       // replaces the kernel, if it has pairs
    std::size_t own = 0, own_bytes = 0;  // the sort's workspace: offset in the scratch memory
  };
  /// The arguments of every kernel.
  struct Arguments {
    const std::byte* table;
    void* memory;
    device::Bases bases;
    std::array<void*, 3> addresses() { return {&table, &memory, &bases}; }
  };
  Arguments arguments_of(std::size_t table, const device::Bases& bound, const Workspace& w) const {
    return {static_cast<const std::byte*>(tables_->data) + table, w.scratch ? w.scratch->data : nullptr,
            bound};
  }
  static bool is_printed(std::size_t launch, const std::vector<KernelHandle>* printed) {
    return printed != nullptr && (*printed)[launch] != nullptr;
  }
  KernelHandle kernel_of(std::size_t launch, const std::vector<KernelHandle>* printed) const {
    return is_printed(launch, printed) ? (*printed)[launch] : launches_[launch].kernel;
  }
  const Grid& grid_of(std::size_t launch, const std::vector<KernelHandle>* printed) const {
    return is_printed(launch, printed) ? launches_[launch].printed_grid : launches_[launch].grid;
  }
  void ask_products(Turn& turn, const Ready& launch, std::span<void* const> bases, const device::Bases& bound,
                    const Workspace& w, std::size_t& operand) const;

  CudaBackend& backend_;
  Gpu& gpu_;
  std::size_t base_count_;  // including the staging memory
  std::vector<Ready> launches_;
  BufferRef tables_;
  std::size_t scratch_bytes_ = 0;  // of the launch that needs most
  std::uint64_t staging_bytes_;
  std::vector<Ref> operands_;              // of all pointer-array calls, in order
  std::shared_ptr<PrintedLoops> printed_;  // null: no loops, or no printed kernels wanted
};

}  // namespace shardarray::cuda

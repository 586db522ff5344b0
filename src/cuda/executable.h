// A program on one GPU: its launches, with what they need in the GPU's memory.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/backend.h"
#include "cuda/gpu.h"
#include "cuda/launch.h"
#include "cuda/printed_loops.h"
#include "cuda/product_algorithms.h"

namespace shardarray::cuda {

class CudaExecutable final : public Executable {
 public:
  /// `alignment`: bytes that all bases are multiples of.
  CudaExecutable(CudaBackend& backend, Gpu& gpu, std::shared_ptr<const Program> program,
                 std::uint64_t alignment = buffer_alignment);
  CompletionRef run(std::span<void* const> bases, RunReport* report) const override;
  void prepare() const override;

 private:
  /// Printed kernels where they are ready; asks for them when the program has run often enough. Null: the interpreting ones.
  const std::vector<KernelHandle>* printed_kernels() const;

  struct Called {
    ProgramCall call;
    std::unique_ptr<CudaExecutable> program;
  };
  struct Ready {
    KernelHandle kernel = nullptr;  // hand-written; null: `called`
    Grid grid;
    std::size_t table = 0;  // bytes behind the beginning of `tables_`
    std::string step;
    std::unique_ptr<Called> called;
    std::vector<ReadyProduct> products;  // in the kernel's place, where there are some
  };
  /// What the launches of one run need beside the program's memory.
  struct Workspace {
    BufferRef scratch, addresses, operands;
    std::vector<Workspace> called;
  };
  Workspace take_workspace() const;
  /// Asks for all steps; workspaces serve one run after the other.
  void ask(Turn& turn, std::span<void* const> bases, const Workspace& w) const;
  void ask_products(Turn& turn, const Ready& launch, std::span<void* const> bases, const Workspace& w,
                    std::size_t& operand) const;
  CudaBackend& backend_;
  Gpu& gpu_;
  std::size_t base_count_;
  std::vector<Ready> launches_;
  BufferRef tables_;
  std::size_t scratch_bytes_ = 0;             // of whichever launch needs most
  std::vector<Ref> operands_;                 // of all calls by addresses, in their order
  std::shared_ptr<const std::string> steps_;  // for messages
  std::vector<std::int64_t> received_;        // what each run reports
  std::shared_ptr<PrintedLoops> printed_;     // null: none are wanted
  mutable std::atomic<int> runs_until_asked_;
};

}  // namespace shardarray::cuda

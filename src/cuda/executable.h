// A program on one GPU: its launches, with what they need in the GPU's memory.
#pragma once
#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/backend.h"
#include "cuda/gpu.h"
#include "cuda/launch.h"
#include "cuda/launch_graph.h"
#include "cuda/printed_loops.h"
#include "cuda/product_algorithms.h"
#include "kernels/device.cuh"

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
    std::vector<std::uint32_t> bases;  // as Launch::bases
    std::unique_ptr<Called> called;
    std::vector<ReadyProduct> products;  // in the kernel's place, where there are some
  };
  /// What the launches of one run need beside the program's memory.
  struct Workspace {
    BufferRef scratch, addresses, operands;
    std::vector<Workspace> called;
  };
  /// What every kernel gets.
  struct Arguments {
    const std::byte* table;
    void* memory;
    device::Bases bases;
    std::array<void*, 3> addresses() { return {&table, &memory, &bases}; }
  };
  /// The launches of one run as a graph.
  struct Replay {
    std::vector<void*> bases;
    Workspace workspace;
    std::unique_ptr<LaunchGraph> graph;
  };
  Workspace take_workspace() const;
  /// The addresses of a run, where kernels find them: those that are read from the GPU's memory are on their way there.
  device::Bases bind(Turn& turn, std::span<void* const> bases, const Workspace& w) const;
  /// Asks for all steps; workspaces serve one run after the other.
  void ask(Turn& turn, std::span<void* const> bases, const device::Bases& bound, const Workspace& w) const;
  void ask_products(Turn& turn, const Ready& launch, std::span<void* const> bases, const Workspace& w,
                    std::size_t& operand) const;
  Arguments arguments_of(const Ready& launch, const device::Bases& bound, const Workspace& w) const {
    return {static_cast<const std::byte*>(tables_->data) + launch.table,
            w.scratch ? w.scratch->data : nullptr, bound};
  }
  KernelHandle kernel_of(std::size_t launch, const std::vector<KernelHandle>* printed) const;

  /// Launches that a graph of a run would have; 0: they cannot be in one.
  std::int64_t graph_nodes() const;
  /// A run is a graph, from the third on; false: this one is to be asked for launch by launch. Null: only one that is there
  /// already serves.
  bool replay(Turn& turn, std::span<void* const> bases, const Workspace* w) const;
  Replay* replay_of(Turn& turn, std::span<void* const> bases, const Workspace* w) const;
  void rebind(Turn& turn, Replay& r, std::span<void* const> bases) const;
  /// Programs, of this one and those that it calls, whose printed kernels are ready.
  int printed_programs() const;

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
  mutable std::atomic<bool> replays_wanted_ = false;
  // Within turns of the GPU:
  mutable int runs_until_replayed_ = 2;  // a program that runs once or twice gains nothing
  mutable int printed_in_replays_ = 0;   // printed_programs() when they were made
  mutable std::list<Replay> replays_;    // the latest first
};

}  // namespace shardarray::cuda

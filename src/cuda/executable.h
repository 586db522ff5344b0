// A program on one or several GPUs: its launches on each of them, and where the GPUs synchronize.
#pragma once
#include <atomic>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuda/crossing.h"
#include "cuda/gpu_launches.h"
#include "cuda/gpu_steps.h"
#include "cuda/host_step.h"
#include "cuda/launch_graph.h"
#include "cuda/program_kernel.h"

namespace shardarray::cuda {

class CudaExecutable final : public Executable {
 public:
  /// `alignment`: bytes that all bases are multiples of. `printed`: kernels are printed for it once it has run often enough. `part`: for a
  /// program over several processes, this process's part; `program` is that part's.
  CudaExecutable(CudaBackend& backend, const GpuPlaces& where, std::shared_ptr<const Program> program,
                 std::uint64_t alignment = buffer_alignment, bool printed = true,
                 std::shared_ptr<const LocalPart> part = nullptr);
  CompletionRef run(std::span<void* const> bases, RunReport* report, std::uint64_t numbers) const override;
  void prepare() const override;

 private:
  struct Called {
    ProgramCall call;
    std::unique_ptr<CudaExecutable> program;
  };
  /// Programs selected by a value in device memory, which the host reads between launches.
  struct Branches {
    Ref value;  // int32: the program's number; of a loop bool: whether the second one runs once more
    std::size_t gpu = 0;  // which has the value
    bool is_loop = false;
    std::vector<std::pair<std::size_t, ProgramLoop::Carry>> carries;  // of a loop, with their GPUs
    std::vector<Called> programs;
  };
  /// Launches that each GPU can run by itself; or an NCCL step, a host step, boxes of other processes, or one or more called programs.
  struct Stage {
    std::vector<std::size_t> first, last;  // ranges of launches, by GPU
    bool meets = false;                    // as in GpuSteps
    std::unique_ptr<NcclStep> nccl;        // null, like the following: launches
    std::unique_ptr<HostStep> host;
    std::unique_ptr<Crossing> crossing;
    std::unique_ptr<Called> called;
    std::unique_ptr<Branches> branches;

    bool is_launches() const { return !nccl && !host && !crossing && !called && !branches; }
    std::span<const Called> programs() const {
      if (called) return {called.get(), 1};
      return branches ? std::span<const Called>(branches->programs) : std::span<const Called>();
    }
  };
  /// What a run's launches need beside the program's memory.
  struct Workspace {
    std::vector<GpuLaunches::Workspace> gpus;
    std::vector<Workspace> called;
    bool one_kernel = false;  // it does the run; the other members are empty then
    BufferRef scratch;        // of the one kernel
  };
  /// A run's launches as a graph.
  struct Replay {
    std::vector<void*> bases;
    Workspace workspace;
    std::unique_ptr<LaunchGraph> graph;
  };
  using Turns = std::span<Turn* const>;  // of the GPUs, in order
  using Bound = std::vector<device::Bases>;

  /// Steps that run concurrently, one per GPU; a step that does nothing adds no stage.
  void add(std::span<const Step> of_gpu, bool meets, std::uint64_t alignment,
           std::vector<std::vector<KernelLaunch>>& launches, std::vector<std::string>& named);
  /// Boxes that move between processes before the step.
  void add_crossings(HostBackend host, const GpuPlaces& where, const Program& program, std::size_t step,
                     std::vector<std::string>& named);
  /// Begins a run; null: no other process takes part. `caller`: the run of the calling program.
  std::unique_ptr<SharedRun> shared_run(std::uint64_t numbers, SharedRun* caller = nullptr) const;
  Workspace take_workspace() const;
  Workspace workspace() const;
  Bound bind(Turns turns, std::span<void* const> bases, const Workspace& w) const;
  CompletionRef run_part(std::span<void* const> bases, std::uint64_t numbers) const;
  /// Enqueues a run and its end. Null `w`: only as an existing graph; else returns null.
  CompletionRef asked(Turns turns, std::span<void* const> bases, const Workspace* w, int printed,
                      SharedRun* shared = nullptr) const;
  /// Enqueues all steps; one run after another may use the same workspaces.
  void ask(Turns turns, std::span<void* const> bases, const Bound& bound, const Workspace& w,
           SharedRun* shared = nullptr) const;
  void ask_called(Turns turns, const Called& called, std::span<void* const> bases, const Workspace& w,
                  SharedRun* shared) const;
  /// Its run number `run`.
  void ask_once(Turns turns, const Called& called, std::int64_t run, std::span<void* const> bases,
                const Workspace& w, SharedRun* shared) const;
  /// `w`: by program. Waits for the deciding value.
  void ask_branches(Turns turns, const Branches& b, std::span<void* const> bases, const Workspace* w,
                    SharedRun* shared) const;
  std::unique_ptr<Branches> branches_of(CudaBackend& backend, const GpuPlaces& where, const Step& step,
                                        std::uint64_t alignment, bool printed) const;

  /// Runs are one launch from now on.
  bool is_one_kernel() const { return kernel_ != nullptr && kernel_->is_ready(); }
  void count_run() const;
  /// Prints kernels for its loops and for those of the programs that it calls, from now on.
  void print_loops() const;
  /// The same for programs whose single kernel could not be built. Not within turns.
  void print_what_failed() const;
  /// The launches in a run's graph; 0: it cannot be a graph.
  std::int64_t graph_nodes() const;
  /// Whether a graph helps: for one launch with a workspace it does not.
  bool can_be_replayed() const;
  /// Runs as a graph, from the third run on; false: launch by launch instead. Null `w`: only an existing graph will do. `printed`:
  /// printed_programs() before the workspace was taken.
  bool replay(Turns turns, std::span<void* const> bases, const Workspace* w, int printed) const;
  Replay* replay_of(Turns turns, std::span<void* const> bases, const Workspace* w) const;
  void rebind(Turns turns, Replay& r, std::span<void* const> bases) const;
  /// How many of this program and those it calls have printed kernels ready, summed over GPUs.
  int printed_programs() const;

  std::size_t base_count_;
  std::shared_ptr<const LocalPart> part_;  // null: this process has the whole program
  CudaBackend& backend_;
  std::shared_ptr<ProgramKernel> kernel_;  // null: not a single kernel, or part of its caller's
  std::vector<std::unique_ptr<GpuLaunches>> gpus_;
  std::vector<Stage> stages_;
  std::shared_ptr<const std::string> steps_;  // for messages
  std::vector<std::int64_t> received_;        // reported by each run
  mutable std::atomic<bool> replays_wanted_ = false;
  mutable std::atomic<bool> made_up_for_kernel_ = false;
  // Within turns of all GPUs:
  mutable int runs_until_replayed_ = 2;  // a graph does not pay off for one or two runs
  mutable int printed_in_replays_ = 0;   // printed_programs() when the graphs were made
  mutable std::list<Replay> replays_;    // most recent first
};

}  // namespace shardarray::cuda

// A program on one GPU or several: its launches on each of them, and where the GPUs meet.
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
  /// `alignment`: bytes that all bases are multiples of. `printed`: kernels are printed for it, where it runs often enough. `part`: of
  /// a program over several processes, of which `program` is this one's.
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
  /// Programs of which a value in memory says what runs; the host reads it between launches.
  struct Branches {
    Ref value;  // int32: the number of one of them; of a loop bool: whether the second one runs once more
    std::size_t gpu = 0;  // that has it
    bool is_loop = false;
    std::vector<std::pair<std::size_t, ProgramLoop::Carry>> carries;  // of a loop, with their GPUs
    std::vector<Called> programs;
  };
  /// What can be asked for GPU by GPU; or what NCCL does, or the host; or boxes of other processes; or a called program, or some.
  struct Stage {
    std::vector<std::size_t> first, last;  // launches of each GPU
    bool meets = false;                    // as of GpuSteps
    std::unique_ptr<NcclStep> nccl;        // null, as the next ones: launches
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
  /// What the launches of one run need beside the program's memory.
  struct Workspace {
    std::vector<GpuLaunches::Workspace> gpus;
    std::vector<Workspace> called;
    bool one_kernel = false;  // which does the run; the others have nothing then
    BufferRef scratch;        // of the one kernel
  };
  /// The launches of one run as a graph.
  struct Replay {
    std::vector<void*> bases;
    Workspace workspace;
    std::unique_ptr<LaunchGraph> graph;
  };
  using Turns = std::span<Turn* const>;  // of the GPUs, in their order
  using Bound = std::vector<device::Bases>;

  /// Steps beside each other on all GPUs; of one that does nothing no stage.
  void add(std::span<const Step> of_gpu, bool meets, std::uint64_t alignment,
           std::vector<std::vector<KernelLaunch>>& launches, std::vector<std::string>& named);
  /// What moves between processes before the step.
  void add_crossings(HostBackend host, const GpuPlaces& where, const Program& program, std::size_t step,
                     std::vector<std::string>& named);
  /// Begins a run; null: no other process has a part in it. `caller`: of the program that calls this one.
  std::unique_ptr<SharedRun> shared_run(std::uint64_t numbers, SharedRun* caller = nullptr) const;
  Workspace take_workspace() const;
  Workspace workspace() const;
  Bound bind(Turns turns, std::span<void* const> bases, const Workspace& w) const;
  CompletionRef run_part(std::span<void* const> bases, std::uint64_t numbers) const;
  /// A run and its end. Null `w`: only as a graph that is there already, else null.
  CompletionRef asked(Turns turns, std::span<void* const> bases, const Workspace* w, int printed,
                      SharedRun* shared = nullptr) const;
  /// Asks for all steps; workspaces serve one run after the other.
  void ask(Turns turns, std::span<void* const> bases, const Bound& bound, const Workspace& w,
           SharedRun* shared = nullptr) const;
  void ask_called(Turns turns, const Called& called, std::span<void* const> bases, const Workspace& w,
                  SharedRun* shared) const;
  /// Its run number `run`.
  void ask_once(Turns turns, const Called& called, std::int64_t run, std::span<void* const> bases,
                const Workspace& w, SharedRun* shared) const;
  /// `w`: of each of its programs. Waits for what decides.
  void ask_branches(Turns turns, const Branches& b, std::span<void* const> bases, const Workspace* w,
                    SharedRun* shared) const;
  std::unique_ptr<Branches> branches_of(CudaBackend& backend, const GpuPlaces& where, const Step& step,
                                        std::uint64_t alignment, bool printed) const;

  /// Runs are one launch from now on.
  bool is_one_kernel() const { return kernel_ != nullptr && kernel_->is_ready(); }
  void count_run() const;
  /// From now on kernels are printed for its loops and for those of the programs that it calls.
  void print_loops() const;
  /// The same of whichever program should have been one kernel and cannot. Outside of turns.
  void print_what_failed() const;
  /// Launches that a graph of a run would have; 0: they cannot be in one.
  std::int64_t graph_nodes() const;
  /// Whether graphs gain anything: one launch with a workspace does not.
  bool can_be_replayed() const;
  /// A run is a graph, from the third on; false: this one is to be asked for launch by launch. Null: only one that is there
  /// already serves. `printed`: printed_programs() before the workspace was taken.
  bool replay(Turns turns, std::span<void* const> bases, const Workspace* w, int printed) const;
  Replay* replay_of(Turns turns, std::span<void* const> bases, const Workspace* w) const;
  void rebind(Turns turns, Replay& r, std::span<void* const> bases) const;
  /// Programs on a GPU, of this one and those that it calls, whose printed kernels are ready.
  int printed_programs() const;

  std::size_t base_count_;
  std::shared_ptr<const LocalPart> part_;  // null: one process has the whole program
  CudaBackend& backend_;
  std::shared_ptr<ProgramKernel> kernel_;  // null: it is not one kernel, or its caller's does its work
  std::vector<std::unique_ptr<GpuLaunches>> gpus_;
  std::vector<Stage> stages_;
  std::shared_ptr<const std::string> steps_;  // for messages
  std::vector<std::int64_t> received_;        // what each run reports
  mutable std::atomic<bool> replays_wanted_ = false;
  mutable std::atomic<bool> made_up_for_kernel_ = false;
  // Within turns of all GPUs:
  mutable int runs_until_replayed_ = 2;  // a program that runs once or twice gains nothing
  mutable int printed_in_replays_ = 0;   // printed_programs() when they were made
  mutable std::list<Replay> replays_;    // the latest first
};

}  // namespace shardarray::cuda

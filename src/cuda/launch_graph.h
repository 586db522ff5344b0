// The launches of a run as one CUDA graph: asked for by one call, as often as wanted.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "cuda/gpu.h"

namespace shardarray::cuda {

/// Everything but its end happens within turns of its GPUs, always the same ones. What is asked for already is not concerned by
/// changes.
class LaunchGraph {
 public:
  using Ask = std::function<void()>;
  using Turns = std::span<Turn* const>;
  /// Of what `ask` launches in the turns. Throws DeviceError and OutOfMemory where CUDA cannot make it; nothing is done then.
  LaunchGraph(Turns turns, const Ask& ask);
  ~LaunchGraph();
  LaunchGraph(const LaunchGraph&) = delete;
  LaunchGraph& operator=(const LaunchGraph&) = delete;

  /// Other arguments of the launch number `launch` of a GPU, which is asked next; a kernel.
  void set_arguments(std::size_t gpu, std::size_t launch, KernelHandle kernel, const Grid& grid,
                     void** arguments);
  /// The same launches anew, with whatever arguments they have now.
  void set_all(Turns turns, const Ask& ask);
  /// Behind all that the turns asked for. What they ask for from now on is behind it where the others follow the first.
  void launch(Turns turns, const std::string& steps);

 private:
  GraphExec instantiated(GraphHandle graph) const;
  Gpu& gpu_;          // the first
  GraphNodes nodes_;  // of `graph_`; they name those of `exec_`
  GraphHandle graph_ = nullptr;
  GraphExec exec_ = nullptr;
};

}  // namespace shardarray::cuda

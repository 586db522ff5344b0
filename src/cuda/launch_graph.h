// The launches of a run as one CUDA graph: asked for by one call, as often as wanted.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "cuda/gpu.h"

namespace shardarray::cuda {

/// Everything but its end happens within a turn of the GPU. What is asked for already is not concerned by changes.
class LaunchGraph {
 public:
  using Ask = std::function<void()>;
  /// Of what `ask` launches in the turn. Throws DeviceError and OutOfMemory where CUDA cannot make it; nothing is done then.
  LaunchGraph(Turn& turn, const Ask& ask);
  ~LaunchGraph();
  LaunchGraph(const LaunchGraph&) = delete;
  LaunchGraph& operator=(const LaunchGraph&) = delete;

  /// Other arguments of the launch number `launch`, a kernel.
  void set_arguments(std::size_t launch, KernelHandle kernel, const Grid& grid, void** arguments);
  /// The same launches anew, with whatever arguments they have now.
  void set_all(Turn& turn, const Ask& ask);
  void launch(const std::string& steps);

 private:
  GraphExec instantiated(GraphHandle graph) const;
  Gpu& gpu_;
  std::vector<GraphNode> nodes_;  // of `graph_`; they name those of `exec_`
  GraphHandle graph_ = nullptr;
  GraphExec exec_ = nullptr;
};

}  // namespace shardarray::cuda

// A run's launches as one CUDA graph, launched by one call as often as desired.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "cuda/gpu.h"

namespace shardarray::cuda {

/// All use but its destruction is within turns of its GPUs, always the same ones. Changes do not affect launches already made.
class LaunchGraph {
 public:
  using Ask = std::function<void()>;
  using Turns = std::span<Turn* const>;
  /// Captures what `ask` launches in the turns. Throws DeviceError and OutOfMemory if CUDA cannot make the graph; nothing has run then.
  LaunchGraph(Turns turns, const Ask& ask);
  ~LaunchGraph();
  LaunchGraph(const LaunchGraph&) = delete;
  LaunchGraph& operator=(const LaunchGraph&) = delete;

  /// New arguments for kernel launch number `launch` of a GPU, which is current.
  void set_arguments(std::size_t gpu, std::size_t launch, KernelHandle kernel, const Grid& grid,
                     void** arguments);
  /// Captures the same launches anew, with their current arguments.
  void set_all(Turns turns, const Ask& ask);
  /// Runs after all work so far of the turns. Later work of the first turn runs after it; the others must follow the first.
  void launch(Turns turns, const std::string& steps);

 private:
  GraphExec instantiated(GraphHandle graph) const;
  Gpu& gpu_;          // the first
  GraphNodes nodes_;  // of graph_; they also identify the nodes of exec_
  GraphHandle graph_ = nullptr;
  GraphExec exec_ = nullptr;
};

}  // namespace shardarray::cuda

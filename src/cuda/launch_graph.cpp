#include "cuda/launch_graph.h"

#include <utility>

namespace shardarray::cuda {

LaunchGraph::LaunchGraph(Turn& turn, const Ask& ask) : gpu_(turn.gpu_), graph_(turn.capture(ask, nodes_)) {
  try {
    exec_ = instantiated(graph_);
  } catch (...) {
    gpu_.driver_.graph_destroy(graph_);
    throw;
  }
}

// What still runs is freed when it ends. At the end of the process CUDA refuses, and has nothing left to free.
LaunchGraph::~LaunchGraph() {
  gpu_.driver_.graph_exec_destroy(exec_);
  gpu_.driver_.graph_destroy(graph_);
}

GraphExec LaunchGraph::instantiated(GraphHandle graph) const {
  GraphExec exec = nullptr;
  gpu_.check(gpu_.driver_.graph_instantiate(&exec, graph), "cudaGraphInstantiate");
  return exec;
}

void LaunchGraph::set_arguments(std::size_t launch, KernelHandle kernel, const Grid& grid, void** arguments) {
  gpu_.check(gpu_.driver_.graph_set_arguments(exec_, nodes_[launch], kernel, grid, arguments),
             "cudaGraphExecKernelNodeSetParams");
}

void LaunchGraph::set_all(Turn& turn, const Ask& ask) {
  std::vector<GraphNode> nodes;
  const GraphHandle fresh = turn.capture(ask, nodes);
  if (gpu_.driver_.graph_update(exec_, fresh) == ok) {
    gpu_.driver_.graph_destroy(fresh);
    return;
  }
  // A library chose other kernels for other addresses.
  gpu_.driver_.last_error();
  GraphExec exec = nullptr;
  try {
    exec = instantiated(fresh);
  } catch (...) {
    gpu_.driver_.graph_destroy(fresh);
    throw;
  }
  gpu_.driver_.graph_exec_destroy(std::exchange(exec_, exec));
  gpu_.driver_.graph_destroy(std::exchange(graph_, fresh));
  nodes_ = std::move(nodes);
}

void LaunchGraph::launch(const std::string& steps) {
  gpu_.check(gpu_.driver_.graph_launch(exec_, gpu_.stream_), "cudaGraphLaunch", steps);
}

}  // namespace shardarray::cuda

#include "cuda/launch_graph.h"

#include <utility>

namespace shardarray::cuda {

LaunchGraph::LaunchGraph(Turns turns, const Ask& ask)
    : gpu_(turns[0]->gpu_), graph_(capture(turns, ask, nodes_)) {
  try {
    exec_ = instantiated(graph_);
  } catch (...) {
    gpu_.driver_.graph_destroy(graph_);
    throw;
  }
}

// A graph that still runs is freed when it ends. At process exit CUDA refuses, with nothing left to free.
LaunchGraph::~LaunchGraph() {
  gpu_.driver_.graph_exec_destroy(exec_);
  gpu_.driver_.graph_destroy(graph_);
}

GraphExec LaunchGraph::instantiated(GraphHandle graph) const {
  GraphExec exec = nullptr;
  gpu_.check_with_room([&] { return gpu_.driver_.graph_instantiate(&exec, graph); }, "cudaGraphInstantiate");
  return exec;
}

void LaunchGraph::set_arguments(std::size_t gpu, std::size_t launch, KernelHandle kernel, const Grid& grid,
                                void** arguments) {
  gpu_.check(gpu_.driver_.graph_set_arguments(exec_, nodes_[gpu][launch], kernel, grid, arguments),
             "cudaGraphExecKernelNodeSetParams");
}

void LaunchGraph::set_all(Turns turns, const Ask& ask) {
  GraphNodes nodes;
  const GraphHandle fresh = capture(turns, ask, nodes);
  if (gpu_.driver_.graph_update(exec_, fresh) == ok) {
    gpu_.driver_.graph_destroy(fresh);
    return;
  }
  // A library chose other kernels for the new addresses.
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

void LaunchGraph::launch(Turns turns, const std::string& steps) {
  gather(turns);
  gpu_.behind_kernel_ = false;
  gpu_.check_with_room([&] { return gpu_.driver_.graph_launch(exec_, gpu_.stream_); }, "cudaGraphLaunch",
                       steps);
}

}  // namespace shardarray::cuda

// Captures and graphs of the fake driver.
#include <algorithm>

#include "fake_driver.h"

namespace shardarray::testing {

using namespace cuda;

namespace {

struct FakeGraph {
  FakeNodes nodes;
  std::shared_ptr<const bool> there = std::make_shared<bool>();  // as long as the graph
};
/// What was instantiated: it is changed by the nodes of its graph, whatever it does instead by now.
struct FakeExec {
  FakeNodes nodes;
  std::weak_ptr<const bool> graph;
};
FakeGraph& graph_of(GraphHandle g) { return *reinterpret_cast<FakeGraph*>(g); }
FakeExec& exec_of(GraphExec e) { return *reinterpret_cast<FakeExec*>(e); }

}  // namespace

Status begin_fake_capture(Stream s) {
  if (const Status status = enter("cudaStreamBeginCapture")) return status;
  FakeStream& stream = stream_of(s);
  if (stream.capture != nullptr || stream.busy()) return failed(invalid_value);
  capture_stream(stream, std::make_shared<FakeCapture>());
  return ok;
}
Status last_fake_node(GraphNode* to, Stream s) {
  if (const Status status = enter("cudaStreamGetCaptureInfo")) return status;
  const FakeStream& stream = stream_of(s);
  if (stream.capture == nullptr || stream.last.size() != 1) return failed(invalid_value);
  *to = reinterpret_cast<GraphNode>(stream.capture->nodes[stream.last[0]].handle);
  return ok;
}
Status end_fake_capture(GraphHandle* to, Stream s) {
  FakeStream& stream = stream_of(s);
  *to = nullptr;
  const std::shared_ptr<FakeCapture> capture = stream.capture;
  if (capture == nullptr) return failed(invalid_value);
  if (capture->streams[0] != &stream) return (capture->spoiled = true, failed(other_origin));
  const bool joined = capture->all_before(stream.last);
  capture->ended = true;
  for (FakeStream* const each : capture->streams) each->capture = nullptr;
  if (const Status status = enter("cudaStreamEndCapture")) return status;  // ended nevertheless
  if (capture->spoiled) return failed(capture_spoiled);
  if (!joined) return failed(not_joined);
  *to = reinterpret_cast<GraphHandle>(new FakeGraph{.nodes = std::move(capture->nodes)});
  return ok;
}
Status make_fake_exec(GraphExec* to, GraphHandle graph) {
  if (const Status status = enter("cudaGraphInstantiate")) return status;
  *to = reinterpret_cast<GraphExec>(new FakeExec{graph_of(graph).nodes, graph_of(graph).there});
  return ok;
}
Status set_fake_arguments(GraphExec exec, GraphNode node, KernelHandle kernel, const Grid& grid,
                          void** arguments) {
  if (const Status status = enter("cudaGraphExecKernelNodeSetParams")) return status;
  FakeExec& e = exec_of(exec);
  const auto at = std::find_if(e.nodes.begin(), e.nodes.end(), [&](const FakePiece& p) {
    return p.handle == reinterpret_cast<std::uintptr_t>(node);
  });
  if (e.graph.expired() || at == e.nodes.end() || at->kernel == nullptr || kernel == nullptr ||
      at->gpu != fake_current_gpu() || !is_grid(grid))
    return failed(invalid_value);
  at->work = [launch = launch_of(kernel, grid, arguments)] { launch.run(); };
  at->kernel = kernel;
  return ok;
}
Status update_fake_exec(GraphExec exec, GraphHandle graph) {
  if (const Status status = enter("cudaGraphExecUpdate")) return status;
  FakeNodes& mine = exec_of(exec).nodes;
  const FakeNodes& theirs = graph_of(graph).nodes;
  const auto may = [](const FakePiece& a, const FakePiece& b) { return a.may_become(b); };
  if (!std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(), may)) return failed(other_nodes);
  for (std::size_t k = 0; k < mine.size(); k++) {
    mine[k].work = theirs[k].work;
    mine[k].kernel = theirs[k].kernel;
  }
  return ok;
}
Status launch_fake_exec(GraphExec exec, Stream s) {
  if (const Status status = enter("cudaGraphLaunch")) return status;
  if (stream_of(s).gpu != fake_current_gpu()) return failed(invalid_handle);
  const FakeNodes& nodes = exec_of(exec).nodes;
  std::vector<std::size_t> order;
  {
    const std::lock_guard lock(fake_driver().mutex);
    fake_driver().graph_launches++;
    order = any_order(nodes, fake_driver().random);
  }
  for (const std::size_t k : order) {
    if (nodes[k].work == nullptr) continue;
    count_launch(nodes[k].kernel);
    stream_of(s).ask(nodes[k].work, nodes[k].kernel);
  }
  return ok;
}
Status drop_fake_graph(GraphHandle graph) { return (delete &graph_of(graph), ok); }
Status drop_fake_exec(GraphExec exec) { return (delete &exec_of(exec), ok); }

}  // namespace shardarray::testing

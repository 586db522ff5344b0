// Captures and graphs of the fake driver.
#include "fake_driver.h"

namespace shardarray::testing {

using namespace cuda;

namespace {

/// Also what is instantiated of one. The handle of a node is its place, from 1.
struct FakeGraph {
  FakeNodes nodes;
};
FakeGraph& graph_of(GraphHandle g) { return *reinterpret_cast<FakeGraph*>(g); }
FakeGraph& graph_of(GraphExec g) { return *reinterpret_cast<FakeGraph*>(g); }

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
  *to = reinterpret_cast<GraphNode>(stream.last[0] + 1);
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
  *to = reinterpret_cast<GraphHandle>(new FakeGraph{std::move(capture->nodes)});
  return ok;
}
Status make_fake_exec(GraphExec* to, GraphHandle graph) {
  if (const Status status = enter("cudaGraphInstantiate")) return status;
  *to = reinterpret_cast<GraphExec>(new FakeGraph(graph_of(graph)));
  return ok;
}
Status set_fake_arguments(GraphExec exec, GraphNode node, KernelHandle kernel, const Grid& grid,
                          void** arguments) {
  if (const Status status = enter("cudaGraphExecKernelNodeSetParams")) return status;
  auto& nodes = graph_of(exec).nodes;
  const std::size_t at = reinterpret_cast<std::uintptr_t>(node) - 1;
  if (at >= nodes.size() || nodes[at].kernel != kernel || nodes[at].gpu != fake_current_gpu() ||
      !is_grid(grid))
    return failed(invalid_value);
  nodes[at].work = [launch = launch_of(kernel, grid, arguments)] { launch.run(); };
  return ok;
}
Status update_fake_exec(GraphExec exec, GraphHandle graph) {
  if (const Status status = enter("cudaGraphExecUpdate")) return status;
  auto &mine = graph_of(exec).nodes, &theirs = graph_of(graph).nodes;
  const auto like = [](const FakePiece& a, const FakePiece& b) { return a.is_like(b); };
  if (!std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(), like)) return failed(other_nodes);
  mine = theirs;
  return ok;
}
Status launch_fake_exec(GraphExec exec, Stream s) {
  if (const Status status = enter("cudaGraphLaunch")) return status;
  if (stream_of(s).gpu != fake_current_gpu()) return failed(invalid_handle);
  const FakeNodes& nodes = graph_of(exec).nodes;
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
Status drop_fake_exec(GraphExec exec) { return (delete &graph_of(exec), ok); }

}  // namespace shardarray::testing

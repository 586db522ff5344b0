// Runs of a program as graphs: the most recent are kept, each with its run's addresses.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cuda/executable.h"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

// Per program. In a training loop addresses repeat: each device's after one to three steps, all together after at most six.
constexpr std::size_t most_replays = 6;
constexpr std::int64_t most_nodes = 4096;  // per graph and GPU
constexpr int runs_without_memory = 100;   // runs until a graph is tried again after memory ran out

}  // namespace

std::int64_t CudaExecutable::graph_nodes() const {
  if (part_) return 0;  // every run begins with other processes
  std::int64_t nodes = 0;
  for (const auto& g : gpus_) nodes += g->graph_nodes();
  for (const Stage& s : stages_) {
    // The host selects the launches, waits for them, or watches over them.
    if (s.branches || s.host || s.nccl) return 0;
    if (!s.called) continue;
    // Addresses that are read from memory differ between its runs.
    const CudaExecutable& program = *s.called->program;
    const std::int64_t inner = program.graph_nodes();
    if (inner == 0 || !std::ranges::all_of(program.gpus_, &GpuLaunches::self_contained)) return 0;
    if (s.called->call.trip > most_nodes / inner) return 0;
    nodes += inner * s.called->call.trip;
    if (nodes > most_nodes) return 0;
  }
  return nodes > most_nodes ? 0 : nodes;
}

// A graph keeps its workspace. A single launch with a workspace, such as a library's product, is launched anew instead.
bool CudaExecutable::can_be_replayed() const {
  const std::int64_t nodes = graph_nodes();
  if (nodes > std::ssize(gpus_)) return true;
  return nodes > 0 && std::ranges::none_of(gpus_, &GpuLaunches::needs_workspace);
}

int CudaExecutable::printed_programs() const {
  int n = is_one_kernel() ? 1 : 0;
  for (const auto& g : gpus_) n += g->has_printed() ? 1 : 0;
  for (const Stage& s : stages_)
    for (const Called& c : s.programs()) n += c.program->printed_programs();
  return n;
}

bool CudaExecutable::replay(Turns turns, std::span<void* const> bases, const Workspace* w,
                            int printed) const {
  if (!replays_wanted_) return false;
  if (printed != printed_in_replays_) {
    replays_.clear();
    printed_in_replays_ = printed;
  }
  try {
    Replay* const r = replay_of(turns, bases, w);
    if (r == nullptr) return false;
    r->graph->launch(turns, *steps_);
  } catch (const Error& e) {
    // Whatever it was: launch by launch works, or throws the right error. Memory may become free again.
    replays_.clear();
    runs_until_replayed_ = runs_without_memory;
    replays_wanted_ = dynamic_cast<const OutOfMemory*>(&e) != nullptr;
    for (const auto& g : gpus_) g->gpu().throw_if_lost();
    static std::atomic<bool> said = false;
    if (!said.exchange(true))
      fmt::print(stderr, "shardarray: {} The program is launched step by step.\n", e.what());
    return false;
  }
  spread(turns);  // once it is launched, a failure is the run's
  return true;
}

CudaExecutable::Replay* CudaExecutable::replay_of(Turns turns, std::span<void* const> bases,
                                                  const Workspace* w) const {
  const auto at = std::find_if(replays_.begin(), replays_.end(),
                               [&](const Replay& r) { return std::ranges::equal(r.bases, bases); });
  if (at != replays_.end()) {
    replays_.splice(replays_.begin(), replays_, at);
  } else if (w == nullptr) {
    return nullptr;
  } else if (runs_until_replayed_ > 0) {
    runs_until_replayed_--;
    return nullptr;
  } else if (replays_.size() < most_replays) {
    Replay& r = replays_.emplace_front();
    r.workspace = *w;
    const Bound bound = bind(turns, bases, r.workspace);
    r.graph = std::make_unique<LaunchGraph>(turns, [&] { ask(turns, bases, bound, r.workspace); });
    r.bases.assign(bases.begin(), bases.end());
  } else {
    replays_.splice(replays_.begin(), replays_, std::prev(replays_.end()));
    rebind(turns, replays_.front(), bases);
  }
  return &replays_.front();
}

void CudaExecutable::rebind(Turns turns, Replay& r, std::span<void* const> bases) const {
  const Bound bound = bind(turns, bases, r.workspace);
  if (!r.workspace.called.empty() || !std::ranges::all_of(gpus_, &GpuLaunches::only_kernels)) {
    // Libraries and called programs have further nodes.
    r.graph->set_all(turns, [&] { ask(turns, bases, bound, r.workspace); });
  } else {
    for (std::size_t g = 0; g < gpus_.size(); g++) {
      const GpuLaunches::Workspace& w = r.workspace.gpus[g];
      if (w.addresses) continue;  // kernels read the addresses there
      if (gpus_.size() > 1) turns[g]->here();
      gpus_[g]->for_changed([&](std::uint32_t b) { return r.bases[b] != bases[b]; }, bound[g], w,
                            [&](std::size_t k, KernelHandle kernel, const Grid& grid, void** arguments) {
                              r.graph->set_arguments(g, k, kernel, grid, arguments);
                            });
    }
  }
  r.bases.assign(bases.begin(), bases.end());
}

}  // namespace shardarray::cuda

// Runs of a program as graphs: the latest of them are kept, each with the addresses of its run.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cuda/executable.h"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

constexpr std::size_t most_replays =
    4;  // of a program: in a training loop addresses return after a step or two
constexpr std::int64_t most_nodes = 4096;

}  // namespace

std::int64_t CudaExecutable::graph_nodes() const {
  std::int64_t nodes = 0;
  for (const Ready& l : launches_) {
    if (!l.called) {
      nodes += static_cast<std::int64_t>(std::max<std::size_t>(l.products.size(), 1));
    } else {
      // Addresses that are read from memory are other ones in each of its runs.
      const CudaExecutable& program = *l.called->program;
      const std::int64_t inner = program.graph_nodes();
      if (inner == 0 || program.base_count_ > device::few_bases || !program.operands_.empty()) return 0;
      if (l.called->call.trip > most_nodes / inner) return 0;
      nodes += inner * l.called->call.trip;
    }
    if (nodes > most_nodes) return 0;
  }
  return nodes;
}

int CudaExecutable::printed_programs() const {
  int n = printed_ != nullptr && printed_->kernels() != nullptr ? 1 : 0;
  for (const Ready& l : launches_)
    if (l.called) n += l.called->program->printed_programs();
  return n;
}

bool CudaExecutable::replay(Turn& turn, std::span<void* const> bases, const Workspace* w) const {
  if (!replays_wanted_) return false;
  if (w == nullptr) printed_kernels();  // one run more
  if (const int ready = printed_programs(); ready != printed_in_replays_) {
    replays_.clear();
    printed_in_replays_ = ready;
  }
  try {
    Replay* const r = replay_of(turn, bases, w);
    if (r != nullptr) r->graph->launch(*steps_);
    return r != nullptr;
  } catch (const Error& e) {
    // Whatever it was: launch by launch it works, or throws what it should.
    replays_.clear();
    replays_wanted_ = false;
    gpu_.throw_if_lost();
    static std::atomic<bool> said = false;
    if (!said.exchange(true))
      fmt::print(stderr, "shardarray: {} The program is launched step by step.\n", e.what());
    return false;
  }
}

CudaExecutable::Replay* CudaExecutable::replay_of(Turn& turn, std::span<void* const> bases,
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
    const device::Bases bound = bind(turn, bases, r.workspace);
    r.graph = std::make_unique<LaunchGraph>(turn, [&] { ask(turn, bases, bound, r.workspace); });
    r.bases.assign(bases.begin(), bases.end());
  } else {
    replays_.splice(replays_.begin(), replays_, std::prev(replays_.end()));
    rebind(turn, replays_.front(), bases);
  }
  return &replays_.front();
}

void CudaExecutable::rebind(Turn& turn, Replay& r, std::span<void* const> bases) const {
  const device::Bases bound = bind(turn, bases, r.workspace);
  const auto changed = [&](const Ready& l) {
    return std::any_of(l.bases.begin(), l.bases.end(),
                       [&](std::uint32_t b) { return r.bases[b] != bases[b]; });
  };
  const auto is_kernel = [](const Ready& l) { return !l.called && l.products.empty(); };
  if (!std::all_of(launches_.begin(), launches_.end(), is_kernel)) {
    // Libraries and called programs have nodes of their own.
    r.graph->set_all(turn, [&] { ask(turn, bases, bound, r.workspace); });
  } else if (!r.workspace.addresses) {
    const std::vector<KernelHandle>* const printed = printed_kernels();
    for (std::size_t k = 0; k < launches_.size(); k++) {
      const Ready& l = launches_[k];
      if (!changed(l)) continue;
      Arguments arguments = arguments_of(l, bound, r.workspace);
      r.graph->set_arguments(k, kernel_of(k, printed), l.grid, arguments.addresses().data());
    }
  }
  r.bases.assign(bases.begin(), bases.end());
}

}  // namespace shardarray::cuda

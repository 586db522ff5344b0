// Graphs of the fake driver: the work of streams that are captured together, each piece with its predecessors.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace shardarray::testing {

/// A piece of work; `kernel`: of a launch, else null. In a graph without work: a stream waited for an event there.
struct FakePiece {
  std::function<void()> work;
  const void* kernel = nullptr;
  int gpu = 0;
  std::vector<std::size_t> after;  // pieces of the graph
  std::uintptr_t handle = 0;       // no other node of the process has it

  /// Whether a graph update may turn one into the other: kernels may differ, GPU and predecessors may not.
  bool may_become(const FakePiece& p) const {
    return (work == nullptr) == (p.work == nullptr) && (kernel == nullptr) == (p.kernel == nullptr) &&
           gpu == p.gpu && after == p.after;
  }
};
using FakeNodes = std::vector<FakePiece>;
class FakeStream;

/// While it lasts, and then for events that were recorded in it.
struct FakeCapture {
  FakeNodes nodes;
  bool spoiled = false;  ///< a call was made that a capture forbids
  bool ended = false;
  std::vector<FakeStream*> streams;  ///< the first one, which must end it, and those that joined it

  /// Adds a piece after those of `last`; `last` becomes the new one.
  void add(std::function<void()> work, const void* kernel, int gpu, std::vector<std::size_t>& last) {
    static std::atomic<std::uintptr_t> handles = 0;
    nodes.push_back({std::move(work), kernel, gpu, last, ++handles});
    last = {nodes.size() - 1};
  }
  /// Whether each piece comes before or is one of `last`: nothing goes on after the stream that has them.
  bool all_before(const std::vector<std::size_t>& last) const {
    std::vector<bool> before(nodes.size(), false);
    for (const std::size_t k : last) before[k] = true;
    for (std::size_t k = nodes.size(); k-- > 0;)
      for (const std::size_t a : nodes[k].after)
        if (before[k]) before[a] = true;
    return std::all_of(before.begin(), before.end(), [](bool b) { return b; });
  }
};

/// Any order that the graph allows.
template <class Random> std::vector<std::size_t> any_order(const FakeNodes& nodes, Random& random) {
  std::vector<std::size_t> order, ready, waits(nodes.size());
  for (std::size_t k = 0; k < nodes.size(); k++)
    if ((waits[k] = nodes[k].after.size()) == 0) ready.push_back(k);
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    order.push_back(ready.back());
    ready.pop_back();
    for (std::size_t k = order.back() + 1; k < nodes.size(); k++)
      if (std::find(nodes[k].after.begin(), nodes[k].after.end(), order.back()) != nodes[k].after.end() &&
          --waits[k] == 0)
        ready.push_back(k);
  }
  return order;
}

}  // namespace shardarray::testing

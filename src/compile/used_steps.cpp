#include "compile/used_steps.h"

#include <algorithm>

#include "base/at.h"

namespace shardarray {
namespace {

// By local value: whether it leaves the program, is an input, or is read or made by a step that stays.
std::vector<bool> used_values(const Partition& p, const FlatGraph& g) {
  std::vector<bool> used(p.values.size(), false);
  const auto is_used = [&](const LocalStep& s) {
    return (s.node >= 0 && at(g.nodes, s.node).op->effect) ||
           std::any_of(s.out.begin(), s.out.end(), [&](int v) { return used[static_cast<std::size_t>(v)]; });
  };
  const auto use = [&](const std::vector<int>& list) {
    for (int v : list) used[static_cast<std::size_t>(v)] = true;
  };
  use(p.outputs);
  for (std::size_t i = p.steps.size(); i-- > 0;)
    if (is_used(p.steps[i])) {
      use(p.steps[i].in);
      use(p.steps[i].out);
    }
  use(p.inputs);
  return used;
}

}  // namespace

Partition used_steps(Partition p, const FlatGraph& g) {
  const std::vector<bool> used = used_values(p, g);
  Partition kept;
  std::vector<int> number(p.values.size(), -1);
  for (std::size_t v = 0; v < used.size(); v++)
    if (used[v]) {
      number[v] = static_cast<int>(kept.values.size());
      kept.values.push_back(p.values[v]);
    }
  const auto renumber = [&](std::vector<int>& list) {
    for (int& v : list)
      if (v >= 0) v = at(number, v);
  };
  for (LocalStep& s : p.steps) {
    renumber(s.in);
    renumber(s.out);
    if (!s.out.empty() && s.out[0] < 0) continue;
    for (int v : s.out) at(kept.values, v).step = static_cast<int>(kept.steps.size());
    if (s.transfer >= 0) {
      kept.transfers.push_back(std::move(at(p.transfers, s.transfer)));
      s.transfer = static_cast<int>(kept.transfers.size()) - 1;
    }
    kept.steps.push_back(std::move(s));
  }
  kept.inputs = std::move(p.inputs);
  kept.outputs = std::move(p.outputs);
  kept.of_value = std::move(p.of_value);
  kept.notes = std::move(p.notes);
  kept.iterations = std::move(p.iterations);
  kept.branches = std::move(p.branches);
  kept.forwards = p.forwards;
  for (std::vector<int>* list : {&kept.inputs, &kept.outputs, &kept.of_value}) renumber(*list);
  return kept;
}

}  // namespace shardarray

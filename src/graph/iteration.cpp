#include "graph/iteration.h"

#include <unordered_map>
#include <unordered_set>

#include "graph/op.h"
#include "graph/topological.h"

namespace shardarray {

Iteration Iteration::of(const Attrs& a) {
  return {a.graphs[0], static_cast<std::size_t>(a.lo[0]), static_cast<std::size_t>(a.lo[1]), a.shape[0],
          a.step[0] < 0};
}

Attrs Iteration::attrs() const {
  Attrs a;
  a.graphs = {body};
  a.lo = {static_cast<std::int64_t>(constants), static_cast<std::int64_t>(carries)};
  a.shape = {length};
  a.step = {reverse ? -1 : 1};
  return a;
}

Type sequence_of(Type t, std::int64_t length) {
  t.shape.insert(0, length);
  return t;
}
Type element_of(Type t) {
  t.shape.erase(0);
  return t;
}

std::vector<bool> depending(const Graph& g, const std::vector<bool>& from) {
  std::unordered_set<const Node*> reached;
  for (std::size_t k = 0; k < g.in.size(); k++)
    if (from[k]) reached.insert(g.in[k].node());
  for (const Node* n : topological(g.out, [](Node*) { return true; }))
    for (const Array& a : n->in())
      if (reached.contains(a.node())) reached.insert(n);
  std::vector<bool> result;
  for (const Array& a : g.out) result.push_back(reached.contains(a.node()));
  return result;
}

Trimmed trimmed(const Iteration& whole, const std::vector<bool>& used) {
  const Graph& g = *whole.body;
  const std::size_t first_carry = whole.constants, first_element = whole.first_element();
  Trimmed r{whole, {}, {}, std::vector<int>(g.out.size(), -1)};
  std::unordered_map<const Node*, std::size_t> input;
  for (std::size_t k = 0; k < g.in.size(); k++) input.emplace(g.in[k].node(), k);
  for (std::size_t k = 0; k < g.out.size(); k++) {
    const auto found = input.find(g.out[k].node());
    if (found == input.end()) continue;
    if (k < whole.carries ? whole.keeps(k) : found->second >= first_element)
      r.forwarded[k] = static_cast<int>(found->second);
  }
  std::vector<bool> wanted(g.out.size(), false), needed(g.in.size(), false);
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> todo;
  const auto want = [&](std::size_t result) {
    if (wanted[result] || r.forwarded[result] >= 0) return;
    wanted[result] = true;
    if (result < whole.carries) needed[first_carry + result] = true;  // its result may be the initial value
    todo.push_back(g.out[result].node());
  };
  for (std::size_t k = 0; k < g.out.size(); k++)
    if (used[k]) want(k);
  while (!todo.empty()) {
    const Node* const n = todo.back();
    todo.pop_back();
    if (!seen.insert(n).second) continue;
    if (const auto found = input.find(n); found != input.end()) {
      const std::size_t k = found->second;
      needed[k] = true;
      if (k >= first_carry && k < first_element) want(k - first_carry);
    }
    for (const Array& a : n->in()) todo.push_back(a.node());
  }
  const auto take = [&](std::size_t k) {
    if (needed[k]) r.operands.push_back(k);
  };
  for (std::size_t k = 0; k < whole.constants; k++) take(k);
  for (std::size_t k = 0; k < whole.carries; k++)
    if (whole.keeps(k)) take(first_carry + k);
  r.iteration.constants = r.operands.size();
  for (std::size_t k = 0; k < whole.carries; k++)
    if (!whole.keeps(k)) take(first_carry + k);
  r.iteration.carries = r.operands.size() - r.iteration.constants;
  for (std::size_t k = first_element; k < g.in.size(); k++) take(k);
  for (std::size_t k = 0; k < g.out.size(); k++)
    if (wanted[k]) r.results.push_back(k);
  Graph body;
  for (const std::size_t k : r.operands) body.in.push_back(g.in[k]);
  for (const std::size_t k : r.results) body.out.push_back(g.out[k]);
  r.iteration.body = std::make_shared<const Graph>(std::move(body));
  return r;
}

}  // namespace shardarray

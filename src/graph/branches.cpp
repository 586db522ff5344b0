#include "graph/branches.h"

#include <unordered_set>

#include "graph/topological.h"

namespace shardarray {

Choice Choice::of(const Attrs& a) { return {a.graphs}; }
Attrs Choice::attrs() const {
  Attrs a;
  a.graphs = branches;
  return a;
}

Repetition Repetition::of(const Attrs& a) {
  return {a.graphs[0], a.graphs[1], static_cast<std::size_t>(a.lo[0]), static_cast<std::size_t>(a.lo[1])};
}
Attrs Repetition::attrs() const {
  Attrs a;
  a.graphs = {condition, body};
  a.lo = {static_cast<std::int64_t>(asked), static_cast<std::int64_t>(constants)};
  return a;
}

std::vector<bool> needed_inputs(const Graph& g) {
  std::unordered_set<const Node*> reached;
  for (const Node* n : topological(std::span<const Array>(g.out), [](Node*) { return true; }))
    reached.insert(n);
  std::vector<bool> r;
  for (const Array& a : g.in) r.push_back(reached.contains(a.node()));
  return r;
}

}  // namespace shardarray

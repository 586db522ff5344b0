#include "graph/graph.h"

#include <unordered_map>

#include "graph/op.h"

namespace shardarray {

Array placeholder(const Type& t, Where w) { return Array(Node::make(&op_input, {}, {&t, 1}, nullptr, w), 0); }

static void put_type(std::vector<std::uint64_t>& words, const Type& t) {
  words.push_back(static_cast<std::uint64_t>(t.dtype) * 2 + t.weak + (t.shape.size() << 8));
  for (std::int64_t d : t.shape) words.push_back(static_cast<std::uint64_t>(d));
}

std::vector<std::uint64_t> structure(const Graph& g) {
  std::vector<std::uint64_t> words;
  std::unordered_map<Node*, std::uint64_t> number;
  auto refer = [&](const Array& a) {
    words.push_back(a.has_value() ? number.at(a.node()) : ~0ull);
    words.push_back(a.has_value() ? a.index() : 0);
  };
  for (const Array& a : g.in) {
    number.emplace(a.node(), number.size());
    put_type(words, type_of(a));
  }
  for (Node* n : topological(std::span<const Array>(g.out), [](Node*) { return true; })) {
    if (!number.emplace(n, number.size()).second) continue;
    words.push_back(reinterpret_cast<std::uintptr_t>(n->op));
    words.push_back(n->attrs_ ? n->attrs().hash() : 0);
    for (const Array& a : n->in()) refer(a);
    for (const auto& o : n->out()) put_type(words, o.type);
  }
  for (const Array& a : g.out) refer(a);
  return words;
}

}  // namespace shardarray

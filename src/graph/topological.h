// Non-recursive walks over nodes. Included by graph.h.
#pragma once
#include <utility>

#include "base/borrowed.h"
#include "base/pointer_table.h"
#include "graph/graph.h"

namespace shardarray {

/// The path of open nodes, each with the number of its operands already entered.
struct OpenOperands {
  std::vector<std::pair<Node*, std::size_t>> nodes;
  void clear() {
    if (nodes.capacity() > most_borrowed) nodes = {};
    nodes.clear();
  }
};

template <class Enter>
std::vector<Node*> topological(std::span<const Array> roots, Enter enter, std::size_t expected) {
  std::vector<Node*> order;
  order.reserve(expected);
  PointerTable seen(expected);
  const Borrowed<OpenOperands> open;
  auto& stack = open->nodes;
  auto visit = [&](Node* n) {
    if (n && enter(n) && seen.insert(n).second) stack.push_back({n, 0});
  };
  for (const Array& r : roots) {
    visit(r.node());
    while (!stack.empty()) {
      auto& [n, k] = stack.back();
      if (k == n->in().size()) {
        order.push_back(n);
        stack.pop_back();
      } else {
        visit(n->in()[k++].node());
      }
    }
  }
  return order;
}

}  // namespace shardarray

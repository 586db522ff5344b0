// Bounds the work that is recorded but not asked for: if too much is pending, some of it is computed.
#include <algorithm>

#include "execute/evaluate.h"
#include "graph/trace_state.h"

namespace shardarray {

namespace {

bool is_pending(const Node* n) { return !n->evaluated(); }

// What is pending below an array, and the bytes of values that only pending nodes hold.
Pending exactly_below(const Array& a) {
  const std::lock_guard lock(graph_mutex());
  const std::vector<Node*> nodes = topological({&a, 1}, is_pending);
  PointerTable edges;  // to evaluated nodes, from pending ones
  for (const Node* n : nodes)
    for (const Array& x : n->in())
      if (x.node()->evaluated()) edges.insert(x.node()).first++;
  std::uint64_t bytes = 0;
  for (const Node* n : nodes)
    for (const Array& x : n->in()) {
      int& count = edges.insert(x.node()).first;
      if (count == 0 || x.node()->refs() > static_cast<std::uint32_t>(count)) continue;
      count = 0;  // count it once
      for (const auto& o : x.node()->out())
        for (std::size_t k = 0; o.value && k < o.value->buffers.size(); k++)
          bytes += o.value->buffers[k]->bytes;
    }
  return {a.node()->pending().depth, static_cast<std::uint32_t>(nodes.size()),
          static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes >> 10, ~0u))};
}

// A chain is cut at the line of the last cut, if that recurs, so that the pieces of a loop share one program.
bool may_cut_at(const Node& n, const Where& last) {
  return n.pending().depth >= 2 * pending_limit.depth || last.line == 0 ||
         (n.where.line == last.line && n.where.file == last.file);
}

}  // namespace

void compute(Node* n) {
  const Array a = handle(n);
  evaluate({&a, 1}, n->op->name);
}

void relieve(Node* n) {
  TraceState& state = trace_state();
  if (!state.open.empty() || !state.gradients.empty() || state.walks > 0)
    return;                   // they need what they recorded
  if (n->op->effect) return;  // its operands are computed when it acts, at once
  const Array a = handle(n);
  if (n->pending().depth < pending_limit.depth) {
    const Pending p = exactly_below(a);
    if (p.nodes < pending_limit.nodes / 4 && p.kilobytes < pending_limit.kilobytes / 4) {
      // others hold the large values, but maybe not for long: look again soon
      n->set_pending({p.depth, p.nodes, std::min(n->pending().kilobytes, pending_limit.kilobytes / 2)});
      return;
    }
  } else if (!may_cut_at(*n, state.cut)) {
    return;
  }
  state.cut = n->where;
  compute(n);
}

}  // namespace shardarray

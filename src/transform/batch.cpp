// vmap: adds a leading dimension to all nodes that depend on a mapped input.
#include <algorithm>

#include "graph/trace_state.h"
#include "ops/rules.h"
#include "transform/trace.h"

namespace shardarray {

static Batched with_leading_dimension(const BatchArgs& b) {
  Arrays in;
  for (std::size_t k = 0; k < b.in.size(); k++) in.push_back(rules::with_rows(b, k));
  Arrays out = record_again(b.node, in);
  const std::size_t count = out.size();
  return {std::move(out), std::vector<bool>(count, true)};
}

// Whether g contains collectives over the axis, also inside calls.
static bool uses_axis(const Node* n, const std::shared_ptr<const Axis>& axis) {
  const auto& axes = n->attrs().axes;
  if (std::find(axes.begin(), axes.end(), axis) != axes.end() ||
      (n->op->trait == Trait::device_rows && axes.back()->outer == axis))
    return true;
  for (const auto& g : n->attrs().graphs)
    for (const Node* inner : topological(std::span<const Array>(g->out), [](Node*) { return true; }))
      if (uses_axis(inner, axis)) return true;
  return false;
}

Arrays batch_graph(const Graph& g, std::span<const Array> args, std::vector<bool> mapped,
                   const std::shared_ptr<const Axis>& axis, std::vector<bool>& out_mapped) {
  ArrayMap<bool> is_mapped;
  for (std::size_t k = 0; k < args.size(); k++)
    if (mapped[k]) is_mapped[key(args[k])] = true;
  // An array may be passed for a mapped and an unmapped input: make mapped ones distinct.
  Arrays named(args.begin(), args.end());
  for (std::size_t k = 0; k < named.size(); k++)
    if (mapped[k]) {
      is_mapped.erase(key(args[k]));
      named[k] = record(op_identity, {args[k]});
      is_mapped[key(named[k])] = true;
    }
  Arrays out = replay(
      g, named,
      [&](Node* n, std::span<const Array> in) {
        std::vector<bool> m;
        for (const Array& a : in) m.push_back(is_mapped.contains(key(a)));
        if (std::none_of(m.begin(), m.end(), [](bool x) { return x; }) && !uses_axis(n, axis))
          return record_again(*n, in);
        const BatchArgs args_of{*n, in, m, axis, calculus()};
        Batched r = n->op->batch ? n->op->batch(args_of) : with_leading_dimension(args_of);
        for (std::size_t k = 0; k < r.out.size(); k++) {
          // a mapped operand returned as unmapped, its rows now an ordinary dimension (all_gather): make it distinct
          if (!r.mapped[k] && is_mapped.contains(key(r.out[k]))) r.out[k] = record(op_identity, {r.out[k]});
          if (r.mapped[k]) is_mapped[key(r.out[k])] = true;
        }
        return r.out;
      },
      true);
  for (const Array& o : out) out_mapped.push_back(o.has_value() && is_mapped.contains(key(o)));
  return out;
}

}  // namespace shardarray

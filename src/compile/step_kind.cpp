#include "compile/step_kind.h"

#include <algorithm>
#include <set>
#include "base/at.h"

namespace shardarray {
namespace {

// A sum over devices of which each has one term: nothing is added here, the transfer behind it does.
bool leaves_all(const Partition& p, const FlatNode& n, const LocalStep& step) {
  const LocalValue &in = at(p.values, step.in[0]), &out = at(p.values, step.out[0]);
  const auto rank = static_cast<std::int64_t>(in.type.shape.size());
  return !out.layout->unreduced().empty() &&
         std::all_of(n.attrs->dims.begin(), n.attrs->dims.end(), [&](std::int64_t d) {
           return in.layout->tiles(static_cast<int>(d + rank)) ==
                  in.type.shape[static_cast<std::size_t>(d + rank)];
         });
}

}  // namespace

const FlatNode* node_of(const LocalStep& step, const FlatGraph& g) {
  return step.node < 0 ? nullptr : &at(g.nodes, step.node);
}

bool is_squeeze(const FlatNode& n) {
  if (n.op->form != Form::view) return false;
  auto kept = [](const Shape& s) {
    Shape k;
    for (std::int64_t d : s)
      if (d != 1) k.push_back(d);
    return k;
  };
  return kept(n.in_types[0].shape) == kept(n.out_types[0].shape);
}

StepKind step_kind(const Partition& p, const FlatGraph& g, int s) {
  const LocalStep& step = at(p.steps, s);
  const FlatNode* n = node_of(step, g);
  if (step.copy) return StepKind::loop;
  if (!n) return step.transfer < 0 ? StepKind::inlined : StepKind::single;
  if (step.transfer >= 0) return StepKind::single;
  switch (n->op->form) {
    case Form::scalar: return n->in.empty() ? StepKind::inlined : StepKind::loop;
    case Form::map: return StepKind::inlined;
    case Form::view: return is_squeeze(*n) ? StepKind::inlined : StepKind::alias;
    case Form::reduce: return leaves_all(p, *n, step) ? StepKind::alias : StepKind::loop;
    case Form::take: return StepKind::loop;
    default: return StepKind::single;
  }
}

void copy_shared_outputs(Partition& p, const FlatGraph& g) {
  std::set<int> seen;
  for (int& v : p.outputs) {
    if (at(p.values, v).step < 0 && p.forwards) continue;
    int root = v;
    while (at(p.values, root).step >= 0) {
      const int s = at(p.values, root).step;
      const LocalStep& step = at(p.steps, s);
      const FlatNode* n = node_of(step, g);
      const StepKind k = step_kind(p, g, s);
      const bool own =
          k == StepKind::loop || k == StepKind::single || (k == StepKind::inlined && n && !is_squeeze(*n));
      if (own || step.in.empty()) break;
      root = step.in[0];
    }
    const bool from_input = at(p.values, root).step < 0;
    if (!from_input && seen.insert(root).second) continue;
    LocalStep copy;
    copy.in = {v};
    copy.copy = true;
    const LocalValue from = at(p.values, v);
    p.values.push_back({from.type, from.layout, static_cast<int>(p.steps.size()), -1});
    v = static_cast<int>(p.values.size()) - 1;
    copy.out = {v};
    p.steps.push_back(std::move(copy));
  }
}

}  // namespace shardarray

#include "compile/step_kind.h"

#include <algorithm>
#include <set>

#include "base/at.h"
#include "runtime/half_floats.h"

namespace shardarray {
namespace {

// A sum over devices that have one term each: nothing is added locally, only in the transfer that follows.
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

bool is_split(const FlatNode& n) {
  return n.op->form == Form::view && split_map(n.in_types[0].shape, n.out_types[0].shape).has_value();
}

StepKind step_kind(const Partition& p, const FlatGraph& g, int s) {
  const LocalStep& step = at(p.steps, s);
  const FlatNode* n = node_of(step, g);
  if (step.copy) return StepKind::loop;
  if (step.assembly || (!step.out.empty() && at(p.values, step.out[0]).windows)) return StepKind::single;
  if (!n) return step.transfer < 0 ? StepKind::inlined : StepKind::single;
  if (step.transfer >= 0) return StepKind::single;
  if (n->op->trait == Trait::behind) return StepKind::alias;
  switch (n->op->form) {
    case Form::parts:
    case Form::scalar: return n->in.empty() ? StepKind::inlined : StepKind::loop;
    case Form::map: return StepKind::inlined;
    case Form::view: return is_split(*n) ? StepKind::inlined : StepKind::alias;
    case Form::reduce: return leaves_all(p, *n, step) ? StepKind::alias : StepKind::loop;
    case Form::take: return StepKind::loop;
    default: return StepKind::single;
  }
}

namespace {

// Bytes that reading v loads at every point: 0 if it is made of fewer elements.
std::size_t bytes_read(const Partition& p, const FlatGraph& g, int v) {
  const std::int64_t points = num_elements(at(p.values, v).type.shape);
  while (at(p.values, v).step >= 0 && step_kind(p, g, at(p.values, v).step) == StepKind::inlined) {
    const LocalStep& step = at(p.steps, at(p.values, v).step);
    if (step.in.empty()) return 0;
    v = step.in[0];
  }
  const Type& t = at(p.values, v).type;
  return num_elements(t.shape) < points ? 0 : itemsize(t.dtype);
}

// Instructions of n's scalar expression.
std::size_t instructions_of(const FlatNode& n) {
  KernelBuilder b(1, 0);
  std::vector<int> in, stored;
  for (const Type& t : n.in_types) in.push_back(b.arg({t.dtype}));
  for (const Type& t : n.out_types) stored.push_back(b.arg({t.dtype, true}));
  b.begin_stage(false);
  for (int& v : in) v = b.load(v);
  std::vector<int> out(stored.size(), -1);
  const Call call = n.call();
  ScalarArgs args{b, call, in, out, [](ScalarArgs& a, int) { return a.b.index(0); }, nullptr};
  n.op->scalar(args);
  for (std::size_t k = 0; k < out.size(); k++) b.store(stored[k], out[k]);
  return b.finish().code.size() - in.size() - out.size();
}

}  // namespace

bool is_cheap(const Partition& p, const FlatGraph& g, int s) {
  constexpr std::size_t most_instructions = 6;
  const LocalStep& step = at(p.steps, s);
  const FlatNode* n = node_of(step, g);
  if (!n || !is_elementwise(n->op->form)) return false;
  std::size_t read = 0, made = 0;
  for (int v : std::set<int>(step.in.begin(), step.in.end())) read += bytes_read(p, g, v);
  for (int v : step.out) made += itemsize(at(p.values, v).type.dtype);
  if (read > made || n->op->trait == Trait::conversion) return read <= made;
  const auto half = [](const Type& t) { return is_half(t.dtype); };  // each operation rounds
  const auto complex = [](const Type& t) { return is_complex(t.dtype); };
  if (n->op->form == Form::parts || complex(n->out_types[0])) return true;  // nothing is computed
  return std::none_of(n->in_types.begin(), n->in_types.end(), half) && !half(n->out_types[0]) &&
         instructions_of(*n) <= most_instructions;
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
          k == StepKind::loop || k == StepKind::single || (k == StepKind::inlined && n && !is_split(*n));
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

std::vector<int> memories_before(const Partition& p, const std::vector<Storage>& storage,
                                 const std::vector<StepKind>& kinds, int v, int memory) {
  if (memory < 0) return {};
  std::vector<int> all{memory};
  for (int s = at(p.values, v).step; s >= 0 && at(kinds, s) == StepKind::alias; s = at(p.values, v).step) {
    v = at(p.steps, s).in[0];
    for (int other : at(p.steps, s).in) all.push_back(at(storage, other).memory);
  }
  return all;
}

}  // namespace shardarray

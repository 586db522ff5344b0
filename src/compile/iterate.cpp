#include "compile/iterate.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/at.h"
#include "compile/body_run.h"
#include "compile/linearities.h"
#include "compile/moves_once.h"
#include "compile/received.h"
#include "graph/iteration.h"
#include "runtime/half_floats.h"

namespace shardarray {

const Layout* whole_sums(const Layout* l) {
  return l->unreduced().empty() ? l : Layout::of(l->order(), l->dims());
}
std::int64_t all_tiles(const Layout& l) {
  std::int64_t n = 1;
  for (int d = 0; d < l.rank(); d++) n *= l.tiles(d);
  return n;
}

CompileInput input_of_called(FlatGraph graph, const std::vector<const Layout*>& layouts,
                             std::vector<const Layout*> outputs, const CompileInput& in) {
  CompileInput r(*in.target);
  r.graph = std::move(graph);
  r.order = in.order;
  r.inputs = layouts;
  r.outputs = std::move(outputs);
  r.donated.assign(layouts.size(), false);
  r.share_replicas = in.share_replicas;
  r.is_run = true;
  r.is_explained = in.is_explained;
  r.placed = in.placed;
  r.cost = in.cost;
  r.mesh = in.mesh;
  return r;
}

void write_over(CompileInput& called, std::size_t result, std::size_t input) {
  called.donated[input] = true;
  called.written_over[result] = static_cast<int>(input);
}

namespace {

// The layout of the elements of a sequence.
const Layout* element_layout(const Layout& sequence) {
  return Layout::of(sequence.order(), {sequence.dims().begin() + 1, sequence.dims().end()});
}
const Layout* sequence_layout(const Layout& element) {
  std::vector<AxisList> dims = element.dims();
  dims.insert(dims.begin(), AxisList{});
  return Layout::of(element.order(), std::move(dims));
}

// A carry that starts as zeros, or as a requested partial sum, is a partial sum if that moves less per iteration. All carries are looked
// at: one that is no partial sum any more may come to be whole in another one's way.
void keep_partial(BodyRun& run, const std::vector<bool>& may_be, RunLayouts& inputs) {
  if (std::find(may_be.begin(), may_be.end(), true) == may_be.end()) return;
  const Iteration& it = run.iteration();
  const Partition* best = &run.partitioned(inputs, true);
  for (std::size_t k = 0; k < it.carries; k++) {
    if (!may_be[k]) continue;
    const Layout*& carry = inputs[it.constants + k];
    std::vector<const Layout*> seen;
    for (const LocalValue& v : best->values) {
      const Layout* l = v.layout;
      const bool adds_up = !l->unreduced().empty() && l->reducer() == Reducer::sum &&
                           l->order() == carry->order() && l->dims() == carry->dims();
      if (!adds_up || std::find(seen.begin(), seen.end(), l) != seen.end()) continue;
      seen.push_back(l);
      const Layout* const whole = std::exchange(carry, l);
      const Partition& p = run.partitioned(inputs, true);
      if (run.keeps_carries(p, inputs) && received_bytes(p) < received_bytes(*best)) {
        best = &p;
        break;
      }
      carry = whole;
    }
  }
}

PlacedIteration placed(const FlatNode& n, std::span<const Layout* const> given,
                       const std::vector<bool>& zeros, const CompileInput& in) {
  const Iteration it = Iteration::of(*n.attrs);
  BodyRun run(it, in);
  RunLayouts inputs;
  for (std::size_t k = 0; k < given.size(); k++) {
    const bool element = k >= it.first_element();
    const auto rank = static_cast<int>(n.in_types[k].shape.size()) - (element ? 1 : 0);
    if (!given[k]) inputs.push_back(Layout::replicated(in.order, rank));
    else inputs.push_back(element ? element_layout(*given[k]) : whole_sums(given[k]));
  }
  const RunLayouts first = inputs;
  std::vector<bool> may_be = zeros;
  for (std::size_t k = 0; k < it.carries; k++) {
    const Layout* const l = given[it.constants + k];
    const DType t = n.in_types[it.constants + k].dtype;
    may_be[k] = (may_be[k] || (l && !l->unreduced().empty())) && !is_half(t) && t != DType::bool_;
  }
  if (it.carries > 0) {
    run.settle_carries(inputs);
    keep_partial(run, may_be, inputs);
  }
  // Not if memory is short, nor if the lines fix what moves.
  if (it.length > 1 && !in.cost.has_peaks() && run.may_choose())
    inputs = moved_once(run, {n.in_types, given, may_be}, inputs, first, in);
  PlacedIteration r;
  const auto compiled = std::make_shared<const Compiled>(compile(run.input(inputs, true)));
  r.called = {it, compiled, {}};
  for (std::size_t k = 0; k < it.carries; k++)
    r.called.carries.in_place.push_back(compiled->program->outputs[k].alias >= 0);
  for (std::size_t k = 0; k < inputs.size(); k++)
    r.in.push_back(k < it.first_element() ? inputs[k] : sequence_layout(*inputs[k]));
  for (std::size_t k = 0; k < n.out_types.size(); k++) {
    const Layout* l = compiled->output_layouts[k];
    r.out.push_back(k < it.carries ? l : sequence_layout(*l));
  }
  return r;
}

}  // namespace

PlacedIterations::Key::Key(const FlatNode& n, const FlatGraph& g, std::span<const Layout* const> where,
                           std::size_t first_carry, std::size_t carries)
    : attrs(n.attrs), given(where.begin(), where.end()) {
  for (std::size_t k = first_carry; k < first_carry + carries; k++)
    zeros.push_back(!where[k] && literal(n.in[k], g) == 0);
}

PlacedIteration place_iteration(const FlatNode& n, const FlatGraph& g, std::span<const Layout* const> given,
                                const CompileInput& in) {
  const Iteration it = Iteration::of(*n.attrs);
  PlacedIterations::Key key(n, g, given, it.constants, it.carries);
  if (const auto known = in.placed->all.find(key); known != in.placed->all.end()) return known->second;
  const std::vector<bool> zeros = key.zeros;
  return in.placed->all[std::move(key)] = placed(n, given, zeros, in);
}

ProgramCall make_program_call(const LocalStep& s, const FlatNode& n, const CalledIteration& called,
                              std::span<const Ref> scratch, Addresses& at) {
  using Binding = ProgramCall::Binding;
  const Iteration& it = called.iteration;
  const std::shared_ptr<const Program>& program = called.compiled->program;
  ProgramCall::Item item;
  item.bases.resize(program->base_count);
  for (std::size_t d = 0; d < scratch.size(); d++) item.bases[d] = {scratch[d], scratch[d], scratch[d]};
  const auto fixed = [](const Ref& r) { return Binding{r, r, r}; };
  const auto element = [&](Ref r, std::uint64_t bytes) {
    const auto size = static_cast<std::int64_t>(bytes);
    if (it.reverse) r.offset += bytes * static_cast<std::uint64_t>(it.length - 1);
    Binding b = fixed(r);
    b.stride = it.reverse ? -size : size;
    return b;
  };
  // Where iteration `run` writes carry k: the last one writes the result.
  const auto carry = [&](std::size_t k, int device, std::int64_t run) {
    const bool last = called.carries.in_place[k] || (it.length - 1 - run) % 2 == 0;
    return at.ref(s.out[last ? k : n.out_types.size() + called.carries.doubled(k)], device);
  };
  for (std::size_t k = 0; k < program->inputs.size(); k++) {
    const Port& port = program->inputs[k];
    for (std::size_t i = 0; i < port.bases.size(); i++) {
      const int device = port.devices[i];
      const Ref given = at.ref(s.in[k], device);
      Binding& b = item.bases[port.bases[i]];
      if (k < it.constants) b = fixed(given);
      else if (k >= it.first_element()) b = element(given, port.bytes[i]);
      else if (it.length == 1) b = fixed(given);
      else b = {given, carry(k - it.constants, device, 1), carry(k - it.constants, device, 0)};
    }
  }
  for (std::size_t k = 0; k < program->outputs.size(); k++) {
    const Port& port = program->outputs[k];
    for (std::size_t i = 0; i < port.bases.size(); i++) {
      const int device = port.devices[i];
      if (port.alias >= 0) continue;  // overwritten in place: already bound
      Binding& b = item.bases[port.bases[i]];
      if (k >= it.carries) b = element(at.ref(s.out[k], device), port.bytes[i]);
      else if (it.length == 1) b = fixed(at.ref(s.out[k], device));
      else b = {carry(k, device, 0), carry(k, device, 0), carry(k, device, 1)};
    }
  }
  ProgramCall call;
  call.program = program;
  call.trip = it.length;
  call.items.push_back(std::move(item));
  return call;
}

}  // namespace shardarray

#include "transform/eval.h"

#include <fmt/core.h>

#include <map>
#include <unordered_map>

#include "compile/assignment.h"
#include "graph/trace_state.h"
#include "transform/trace.h"

namespace shardarray {

namespace {

void check_readable(const Node* n, const char* what) {
  if (const char* donor = n->donor())
    throw DonationError(
        fmt::format("{}: Array has been deleted with shape={}: it was donated to {}. Pass it without "
                    "std::move to keep it, or use the result.",
                    what, to_string(n->type()), donor));
  if (n->op != &op_input || n->evaluated()) return;
  if (trace_state().is_open(n->trace))
    throw TraceError(fmt::format(
        "{}: reading a value inside a trace: {} has no value while the function is traced. Return it, or use "
        "where/cond instead of reading it.",
        what, to_string(n->type())));
  throw TraceError(
      fmt::format("{}: an array {} escaped from the trace it was recorded in ({}:{}). Values of a traced "
                  "function leave it "
                  "only by being returned.",
                  what, to_string(n->type()), n->where.file, n->where.line));
}

// One forcing: the nodes to compute, the leaves below them, what comes out.
struct Collection {
  FlatGraph graph;
  std::vector<ValueRef> leaves;
  std::vector<std::pair<Node*, std::uint32_t>> outputs;
};

// Operands of calls that came over from other devices; absent entries did not.
using Brought = std::unordered_map<const Node*, std::vector<ValueRef>>;

Collection collect(std::span<const Array> roots, const Brought& brought, const char* what) {
  Collection c;
  const auto nodes = topological(roots, [](Node* n) { return !n->evaluated(); });
  std::unordered_map<const Node*, std::uint32_t> inside;  // node -> edges to it from these nodes
  for (Node* n : nodes) {
    check_readable(n, what);
    if (n->op->form == Form::collective)
      throw TraceError(
          fmt::format("{}: {}: its value depends on the mapped axis '{}'. It has one only inside the map.",
                      what, n->op->name, n->attrs().axes.empty() ? "" : n->attrs().axes[0]->name));
    inside.try_emplace(n, 0);
    for (const Array& a : n->in()) inside[a.node()]++;
  }
  ArrayMap<int> value;
  auto leaf_number = [&](const Array& a, const ValueRef& v) {
    c.graph.inputs.push_back(c.graph.add(&op_input, nullptr, {}, {type_of(a)}, a.node()->where));
    c.leaves.push_back(v);
    return c.graph.inputs.back();
  };
  auto value_number = [&](const Array& a) {
    auto [it, fresh] = value.try_emplace(key(a), -1);
    if (fresh) {  // a leaf
      check_readable(a.node(), what);
      it->second = leaf_number(a, a.node()->out()[a.index()].value);
    }
    return it->second;
  };
  std::vector<Node*> computed;
  for (Node* n : nodes) {
    if (n->op == &op_constant) {  // a number is an argument: another one is no other program
      n->out()[0].value = scalar_value(n->type().dtype, n->attrs().bits);
      n->set_evaluated();
      continue;
    }
    std::vector<int> in;
    std::vector<Type> out;
    const auto moved = brought.find(n);
    for (std::size_t k = 0; k < n->in().size(); k++) {
      const Array& a = n->in()[k];
      in.push_back(moved != brought.end() && moved->second[k] ? leaf_number(a, moved->second[k])
                                                              : value_number(a));
    }
    for (const auto& o : n->out()) out.push_back(o.type);
    const int first = c.graph.add(n->op, n->attrs_, std::move(in), std::move(out), n->where);
    for (std::uint32_t k = 0; k < n->out().size(); k++) value[{n, k}] = first + static_cast<int>(k);
    computed.push_back(n);
  }
  for (Node* n : computed) {
    if (n->refs() <= inside[n]) continue;  // nobody outside holds it
    for (std::uint32_t k = 0; k < n->out().size(); k++) {
      c.outputs.push_back({n, k});
      c.graph.outputs.push_back(value[{n, k}]);
    }
  }
  return c;
}

// The devices that a node's value will be on, as far as committed leaves and constraints say.
const DeviceOrder* devices_of(const Node* n, std::unordered_map<const Node*, const DeviceOrder*>& known) {
  auto it = known.find(n);
  return it == known.end() ? nullptr : it->second;
}

// The operands of a pmap's call that lie on other devices than the map's, brought over.
std::vector<ValueRef> bring_operands(const Node* n, const DeviceOrder* home,
                                     std::unordered_map<const Node*, const DeviceOrder*>& known,
                                     const char* what) {
  std::vector<ValueRef> values;
  for (const Array& a : n->in()) {
    const DeviceOrder* order = devices_of(a.node(), known);
    if (!a.node()->evaluated() && order && order->sorted() != home->sorted()) evaluate({&a, 1}, what);
    const ValueRef v = a.node()->evaluated() ? value_of(a) : nullptr;
    const ValueRef here = v ? bring_home(v, type_of(a), home) : nullptr;
    values.push_back(here == v ? nullptr : here);
  }
  return values;
}

// A constraint may move data to other devices: what it moves is computed first, on its own. So does a pmap.
Brought evaluate_moves(std::span<const Array> roots, const char* what) {
  std::unordered_map<const Node*, const DeviceOrder*> known;
  Brought brought;
  for (Node* n : topological(roots, [](Node* x) { return !x->evaluated(); })) {
    const DeviceOrder* here = nullptr;
    for (const Array& a : n->in()) {
      const Node* m = a.node();
      if (!m->evaluated()) {
        if (!here) here = devices_of(m, known);
      } else if (const ValueRef& v = m->out()[a.index()].value;
                 v && (v->committed || v->layout->order()->size() > 1)) {
        here = v->layout->order();
      }
    }
    if (n->op->form == Form::constraint && n->op != &op_input) {
      const auto lead = n->attrs().lo.empty() ? 0 : static_cast<int>(n->attrs().lo[0]);
      const DeviceOrder* to =
          layout_of(*n->attrs().sharding, static_cast<int>(n->type().shape.size()) - lead)->order();
      if (here && here->sorted() != to->sorted()) {
        const Array operand = n->in()[0];
        evaluate({&operand, 1}, what);
        n->out()[0].value = reshard_value(value_of(operand), n->type(), *n->attrs().sharding);
        n->set_evaluated();
      }
      here = to;
    } else if (const DeviceOrder* home = mapped_devices(*n)) {
      if (here && here->sorted() != home->sorted()) brought[n] = bring_operands(n, home, known, what);
      here = home;
    }
    known[n] = here;
  }
  return brought;
}

void finish(const Collection& c, std::vector<ValueRef> values) {
  const auto& gradients = trace_state().gradients;
  for (std::size_t k = 0; k < c.outputs.size(); k++) {
    auto [n, index] = c.outputs[k];
    n->out()[index].value = std::move(values[k]);
    if (index + 1 < n->out().size()) continue;
    n->set_evaluated();
    const bool kept = !gradients.empty() && n->seq >= gradients.front();
    if (!kept) n->release_operands();
  }
}

}  // namespace

void evaluate(std::span<const Array> roots, const char* what) {
  bool work = false;
  for (const Array& a : roots) {
    if (!a.has_value()) continue;
    if (a.node()->donor()) check_readable(a.node(), what);
    work |= !a.node()->evaluated();
  }
  if (!work) return;
  const Brought brought = evaluate_moves(roots, what);
  std::unique_lock lock(graph_mutex());
  const Collection c = collect(roots, brought, what);
  if (c.outputs.empty()) return;
  const auto p = load_program(c.graph, c.leaves, std::vector<bool>(c.leaves.size(), false), {}, {}, what);
  std::vector<LaunchLeaf> leaves;
  for (const ValueRef& v : c.leaves) leaves.push_back({v});
  std::vector<ValueRef> values;
  launch(*p, leaves, values);
  finish(c, std::move(values));
}

const ValueRef& value_of(const Array& a) { return a.node()->out()[a.index()].value; }

const ValueRef& force(const Array& a, const char* what) {
  type_of(a, what);
  evaluate({&a, 1}, what);
  return value_of(a);
}

Array leaf_array(const Type& t, ValueRef v, Where w) {
  Node* n = Node::make(&op_input, {}, {&t, 1}, nullptr, w);
  n->out()[0].value = std::move(v);
  n->set_evaluated();
  return Array(n, 0);
}

Array tombstone(const Type& t, const char* donor) {
  Node* n = Node::make(&op_input, {}, {&t, 1}, nullptr, {});
  n->set_donor(donor);
  n->trace = 0;  // it outlives the trace in which it is made
  return Array(n, 0);
}

}  // namespace shardarray

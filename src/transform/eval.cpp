#include "transform/eval.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "base/pointer_table.h"
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

// One forcing, numbered as a FlatGraph: leaves get their numbers where they are first used.
struct Collection {
  struct Entry {
    Node* node;
    int leaf;  // which output of an evaluated node this is; -1: the node is to be computed
  };
  std::vector<Entry> entries;
  std::vector<int> operands;  // of the nodes to compute, one after the other
  std::vector<LaunchLeaf> leaves;
  std::vector<int> inputs;   // the leaves' values
  Arrays outputs;            // of nodes that somebody outside holds; he may let go while the program runs
  std::vector<int> results;  // their values
  bool plain = true;         // no constraints, no graphs inside
};

// Operands of calls that came over from other devices; absent entries did not.
using Brought = std::unordered_map<const Node*, std::vector<ValueRef>>;

void check_computable(const Node* n, const char* what) {
  check_readable(n, what);
  if (n->op->form == Form::collective)
    throw TraceError(
        fmt::format("{}: {}: its value depends on the mapped axis '{}'. It has one only inside the map.",
                    what, n->op->name, n->attrs().axes.empty() ? "" : n->attrs().axes[0]->name));
}

Collection collect(std::span<Node* const> nodes, const Brought& brought, const char* what) {
  Collection c;
  PointerTable inside;  // node -> edges to it from these nodes
  for (Node* n : nodes) {
    check_computable(n, what);
    for (const Array& a : n->in()) inside.insert(a.node()).first++;
  }
  int values = 0;
  PointerTable number;  // output -> value
  auto leaf_number = [&](const Array& a, const ValueRef& v) {
    c.entries.push_back({a.node(), static_cast<int>(a.index())});
    c.leaves.push_back({v});
    c.inputs.push_back(values);
    return values++;
  };
  auto value_number = [&](const Array& a) {
    const auto& out = a.node()->out()[a.index()];
    auto [n, fresh] = number.insert(&out);
    if (fresh) {  // a leaf
      check_readable(a.node(), what);
      n = leaf_number(a, out.value);
    }
    return n;
  };
  for (Node* n : nodes) {
    if (n->op == &op_constant) {  // a number is an argument: another one is no other program
      n->out()[0].value = scalar_value(n->type().dtype, n->attrs().bits);
      n->set_evaluated();
      continue;
    }
    c.plain &= n->op->form != Form::constraint && n->attrs().graphs.empty();
    const auto moved = brought.empty() ? brought.end() : brought.find(n);
    for (std::size_t k = 0; k < n->in().size(); k++) {
      const Array& a = n->in()[k];
      c.operands.push_back(moved != brought.end() && moved->second[k] ? leaf_number(a, moved->second[k])
                                                                      : value_number(a));
    }
    c.entries.push_back({n, -1});
    for (const auto& o : n->out()) number.insert(&o).first = values++;
  }
  for (const Collection::Entry& e : c.entries) {
    if (e.leaf >= 0 || e.node->refs() <= static_cast<std::uint32_t>(inside[e.node]))
      continue;  // nobody outside holds it
    for (std::uint32_t k = 0; k < e.node->out().size(); k++) {
      c.outputs.push_back(handle(e.node, k));
      c.results.push_back(number[&e.node->out()[k]]);
    }
  }
  return c;
}

// put_structure() of what flat_graph() makes, without making it.
std::vector<std::uint64_t> structure_of(const Collection& c) {
  std::vector<std::uint64_t> words;
  words.reserve(16 * c.entries.size() + 32);
  const int* in = c.operands.data();
  for (const auto& [n, leaf] : c.entries) {
    if (leaf >= 0) {
      put_node(&op_input, nullptr, {}, 1, words);
      put_value_type(n->type(static_cast<std::size_t>(leaf)), words);
      continue;
    }
    put_node(n->op, n->attrs_.get(), {in, n->in().size()}, n->out().size(), words);
    for (const auto& o : n->out()) put_value_type(o.type, words);
    in += n->in().size();
  }
  put_ends(c.inputs, c.results, words);
  return words;
}

FlatGraph flat_graph(const Collection& c) {
  FlatGraph g;
  const int* in = c.operands.data();
  for (const auto& [n, leaf] : c.entries) {
    if (leaf >= 0) {
      g.add(&op_input, nullptr, {}, {n->type(static_cast<std::size_t>(leaf))}, n->where);
      continue;
    }
    std::vector<Type> out;
    for (const auto& o : n->out()) out.push_back(o.type);
    g.add(n->op, n->attrs_, {in, in + n->in().size()}, std::move(out), n->where);
    in += n->in().size();
  }
  g.inputs = c.inputs;
  g.outputs = c.results;
  return g;
}

std::shared_ptr<const LoadedProgram> program_of(const Collection& c, const char* what) {
  if (c.plain)
    if (auto p = find_program(structure_of(c), c.leaves, c.outputs.size())) return p;
  std::vector<ValueRef> leaves;
  for (const LaunchLeaf& l : c.leaves) leaves.push_back(l.value);
  return load_program(flat_graph(c), leaves, std::vector<bool>(leaves.size(), false), {}, {}, what);
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

// The nodes have these values, unless another thread was faster.
void finish(const Collection& c, std::span<ValueRef> values) {
  const auto& gradients = trace_state().gradients;
  for (std::size_t k = 0; k < c.outputs.size(); k++) {
    Node* const n = c.outputs[k].node();
    const std::uint32_t index = c.outputs[k].index();
    if (n->evaluated()) continue;
    n->out()[index].value = std::move(values[k]);
    if (index + 1 < n->out().size()) continue;
    n->set_evaluated();
    const bool kept = !gradients.empty() && n->seq >= gradients.front();
    if (!kept) n->release_operands();
  }
}

// Its operands may have to come over from other devices.
bool may_move(const Node* n) { return n->op->form == Form::constraint || n->op->form == Form::call; }

}  // namespace

void evaluate(std::span<const Array> roots, const char* what) {
  bool work = false;
  for (const Array& a : roots) {
    if (!a.has_value()) continue;
    if (a.node()->donor()) check_readable(a.node(), what);
    work |= !a.node()->evaluated();
  }
  if (!work) return;
  const auto open = [](Node* n) { return !n->evaluated(); };
  std::unique_lock lock(graph_mutex());
  std::vector<Node*> nodes = topological(roots, open);
  Brought brought;
  if (std::any_of(nodes.begin(), nodes.end(), may_move)) {
    lock.unlock();
    brought = evaluate_moves(roots, what);
    lock.lock();
    nodes = topological(roots, open);
  }
  const Collection c = collect(nodes, brought, what);
  if (c.outputs.empty()) return;
  const auto program = program_of(c, what);
  lock.unlock();
  std::vector<ValueRef> values;
  launch(*program, c.leaves, values);
  lock.lock();
  finish(c, values);
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

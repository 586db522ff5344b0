#include "execute/evaluate.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "base/borrowed.h"
#include "base/fence.h"
#include "base/host_memory.h"
#include "base/pointer_table.h"
#include "base/sizes.h"
#include "execute/places.h"
#include "graph/key.h"
#include "graph/trace_state.h"
#include "ops/record.h"
#include "runtime/devices.h"
#include "transform/trace.h"

namespace shardarray {

namespace {

const char* instead_of_reading(std::string_view what) {
  if (what == "<<" || what == "to_string") return R"(Print it with debug::print("{}", x), or return it.)";
  return "Return it and read it outside; choose between values with where(condition, a, b).";
}

void check_readable(Node* n, const char* what) {
  what = current_function(what);
  if (const char* const donor = n->donor()) refuse_donated(what, handle(n), donor);
  if (n->op->form != Form::leaf || n->evaluated()) return;
  if (trace_state().is_open(n->trace))
    throw TraceError(
        fmt::format("{}: reading a value inside a trace: {} has no value while the function is traced. {}",
                    what, to_string(n->type()), instead_of_reading(what)));
  refuse_escaped(n, what);
}

// The value of an evaluated array. A donation marks the node first and then looks for other owners of the value, so the value is copied
// here before the mark is read: one of the two notices the other.
[[gnu::always_inline]] inline ValueRef readable_value(const Array& a, const char* what) {
  ValueRef v = a.node()->out()[a.index()].value;
  fence_after_rmw();
  if (a.node()->donor() || !a.node()->evaluated()) check_readable(a.node(), what);
  return v;
}

// What one evaluation computes, numbered as a FlatGraph: leaves get their numbers at their first use.
struct Collection {
  struct Entry {
    Node* node;
    int leaf;  // which output of an evaluated node this is; -1: the node is to be computed
  };
  std::vector<Entry> entries;
  std::vector<int> operands;  // of the nodes to compute, concatenated
  std::vector<LaunchLeaf> leaves;
  std::vector<int> inputs;   // the leaves' numbers
  Arrays outputs;            // of nodes that are held from outside, perhaps no longer when the program ends
  std::vector<int> results;  // their numbers
  bool plain = true;         // no constraints, no nested graphs
  Words key;
  std::vector<ValueRef> values;  // of the outputs
  Arrays dead;                   // no longer needed; freed without the lock
  struct Number {
    int leaf;
    DType dtype;
    std::uint64_t bits;
  };
  std::vector<Number> numbers;  // leaves whose values the thread caches; their nodes may die after unlocking

  /// Call it without the lock: what is freed may call back into the library.
  void clear() {
    if (entries.capacity() > most_borrowed) {
      *this = {};
      return;
    }
    entries.clear();
    operands.clear();
    leaves.clear();
    inputs.clear();
    outputs.clear();
    results.clear();
    plain = true;
    key.clear();
    values.clear();
    dead.clear();
    numbers.clear();
  }
};

// Operands of calls that were moved from other devices; absent entries were not.
using Brought = std::unordered_map<const Node*, std::vector<ValueRef>>;

void check_computable(Node* n, const char* what) {
  check_readable(n, what);
  if (n->op->form == Form::collective)
    throw TraceError(
        fmt::format("{}: {}: its value depends on the mapped axis '{}'. It has one only inside the map.",
                    what, n->op->name, n->attrs().axes.empty() ? "" : n->attrs().axes[0]->name));
}

bool is_open(const Node* n) { return !n->evaluated(); }

// The nodes to compute for some roots, operands first.
struct OpenNodes {
  std::vector<Node*> nodes;
  PointerTable edges;  // per node: its uses as an operand of these nodes

  explicit OpenNodes(std::span<const Array> roots, std::size_t expected = 0)
      : nodes(topological(roots, is_open, expected)), edges(nodes.size()) {
    for (const Node* n : nodes)
      for (const Array& a : n->in()) edges.insert(a.node()).first++;
  }
  /// Whether something else than these nodes holds it.
  bool is_held(const Node* n) { return n->refs() > static_cast<std::uint32_t>(edges[n]); }
};

void collect(OpenNodes& open, const Brought& brought, const char* what, Collection& c) {
  const std::vector<Node*>& nodes = open.nodes;
  const Device& device = default_device_of(*nodes.back()->modes);
  for (Node* n : nodes) check_computable(n, what);
  int values = 0;
  PointerTable number(nodes.size());  // output -> value
  auto leaf_number = [&](const Array& a, const ValueRef& v) {
    c.entries.push_back({a.node(), static_cast<int>(a.index())});
    c.leaves.push_back({v});
    c.inputs.push_back(values);
    return values++;
  };
  auto value_number = [&](const Array& a) {
    const auto& out = a.node()->out()[a.index()];
    auto [n, fresh] = number.insert(&out);
    if (!fresh) return n;
    if (is_literal(*a.node()))
      c.numbers.push_back(
          {static_cast<int>(c.leaves.size()), a.node()->type().dtype, a.node()->attrs().bits});
    return n = leaf_number(a, readable_value(a, what));
  };
  for (Node* n : nodes) {
    if (is_literal(*n)) {  // literals are arguments: other numbers need no other program
      const auto value = open.is_held(n) ? scalar_value : shared_scalar_value;
      n->out()[0].value = value(n->type().dtype, n->attrs().bits, device);
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
    if (e.leaf >= 0 || !open.is_held(e.node)) continue;
    for (std::uint32_t k = 0; k < e.node->out().size(); k++) {
      c.outputs.push_back(handle(e.node, k));
      c.results.push_back(number[&e.node->out()[k]]);
    }
  }
}

// put_structure() of flat_graph(c), without building the graph.
void put_structure_of(Collection& c) {
  Words& words = c.key;
  words.reserve(16 * c.entries.size() + 32);
  const int* in = c.operands.data();
  for (const auto& [n, leaf] : c.entries) {
    if (leaf >= 0) {
      put_node(&op_input, nullptr, nullptr, {}, 1, words);
      put_value_type(n->type(static_cast<std::size_t>(leaf)), words);
      continue;
    }
    put_node(n->op, n->attrs_.get(), n->modes, {in, n->in().size()}, n->out().size(), words);
    for (const auto& o : n->out()) put_value_type(o.type, words);
    in += n->in().size();
  }
  put_ends(c.inputs, c.results, words);
}

FlatGraph flat_graph(const Collection& c) {
  FlatGraph g;
  const int* in = c.operands.data();
  for (const auto& [n, leaf] : c.entries) {
    if (leaf >= 0) {
      g.add(&op_input, nullptr, {}, {n->type(static_cast<std::size_t>(leaf))}, n->where, n->modes);
      continue;
    }
    std::vector<Type> out;
    for (const auto& o : n->out()) out.push_back(o.type);
    g.add(n->op, n->attrs_, {in, in + n->in().size()}, std::move(out), n->where, n->modes);
    in += n->in().size();
  }
  g.inputs = c.inputs;
  g.outputs = c.results;
  return g;
}

// All outputs of n have values. Its operands go to `dead`: what is freed with them may call back into the library.
void settle(Node* n, Arrays& dead) {
  n->set_evaluated();
  if (!n->gradient || !keep_for_gradient(n->gradient, n)) n->release_operands(dead);
}

// Computes a constraint, or a cotangent that returns to its primal's devices: evaluates the operands, moves the first.
void move_value(const Move& m, const char* what) {
  Node* const n = m.of.node();
  for (const Array& a : m.operands) evaluate({&a, 1}, what);
  const ValueRef from = value_of(m.operands[0]);
  ValueRef v = n->op->trait == Trait::beside ? put_beside(from, n->type(), *value_of(m.operands[1]))
                                             : reshard_value(from, n->type(), *n->attrs().sharding);
  Arrays dead;
  const std::lock_guard lock(graph_mutex());
  if (n->evaluated()) return;  // another thread was faster
  n->out()[0].value = std::move(v);
  settle(n, dead);
}

// The operands of a pmap's call that are on other devices than the map's, computed and moved; the others are absent.
std::vector<ValueRef> bring_operands(const Move& m, const char* what) {
  std::vector<ValueRef> values(m.operands.size());
  for (std::size_t k = 0; k < values.size(); k++) {
    const Array& a = m.operands[k];
    if (!a.has_value()) continue;
    evaluate({&a, 1}, what);
    const ValueRef v = value_of(a), here = bring_home(v, type_of(a), m.home);
    if (here != v) values[k] = here;
  }
  return values;
}

// Makes the moves that `nodes` (operands first) need. `brought`: what calls get in place of their operands. Unlocks meanwhile.
struct Moves {
  std::vector<Move> all;  // keeps the nodes of `brought` alive
  Brought brought;
};
Moves settle_moves(std::span<Node* const> nodes, std::unique_lock<std::mutex>& lock, const char* what) {
  Moves moves;
  Places places(nodes.size());
  for (Node* n : nodes)
    if (auto m = places.add(n)) moves.all.push_back(std::move(*m));
  if (moves.all.empty()) return moves;
  lock.unlock();
  for (const Move& m : moves.all) {
    if (m.home) moves.brought[m.of.node()] = bring_operands(m, what);
    else move_value(m, what);
  }
  lock.lock();
  return moves;
}

// Stores the values in the nodes, unless another thread was faster.
void finish(Collection& c) {
  for (std::size_t k = 0; k < c.outputs.size(); k++) {
    Node* const n = c.outputs[k].node();
    const std::uint32_t index = c.outputs[k].index();
    if (n->evaluated()) continue;
    n->out()[index].value = std::move(c.values[k]);
    if (index + 1 < n->out().size()) continue;
    settle(n, c.dead);
  }
}

// A literal that is returned unchanged gets a value of its own: its owner may donate it.
void own_numbers(const LoadedProgram& p, Collection& c) {
  if (c.numbers.empty() || std::ranges::all_of(p.sources, [](int leaf) { return leaf < 0; })) return;
  for (const Collection::Number& n : c.numbers) {
    if (std::ranges::count(p.sources, n.leaf) == 0) continue;
    ValueRef& value = c.leaves[static_cast<std::size_t>(n.leaf)].value;
    value = scalar_value(n.dtype, n.bits, value->layout->order()->devices()[0]);
  }
}

// The open nodes below `roots`. Held nodes that would be placed elsewhere if computed alone are computed before.
OpenNodes of_one_place(std::span<const Array> roots, std::size_t expected, std::unique_lock<std::mutex>& lock,
                       const char* what) {
  while (true) {
    OpenNodes open(roots, expected);
    if (open.nodes.size() < 2 || lie_together(open.nodes)) return open;
    std::vector<bool> held;
    for (const Node* n : open.nodes) held.push_back(open.is_held(n));
    const auto count = static_cast<std::size_t>(std::count(held.begin(), held.end(), true));
    if (count < 2) return open;
    Arrays first = first_place(open.nodes, held);
    if (first.size() == count) return open;
    lock.unlock();
    evaluate(first, what);
    first.clear();
    lock.lock();
  }
}

// The backend of what is to be computed over several processes; null: there is no such thing.
Backend* shared_backend(const OpenNodes& open) {
  if (!has_other_processes()) return nullptr;
  const auto shared = [](const std::vector<Device>& devices) {
    return spans_processes(devices) ? &backend(devices.front().platform) : nullptr;
  };
  for (const Node* n : open.nodes) {
    if (const auto& s = n->attrs().sharding)
      if (Backend* const b = shared(s->device_assignment())) return b;
    for (const Array& a : n->in())
      if (const ValueRef& v = a.node()->out()[a.index()].value)
        if (Backend* const b = shared(v->layout->order()->devices())) return b;
  }
  return nullptr;
}

// Computes the nodes without values as one program, after what has to move or is placed elsewhere. The lock is held while the graph is
// read, not while anything runs.
void evaluate_open(std::span<const Array> roots, const char* what) {
  constexpr std::uint32_t many = 1024;  // bounds the estimate, which counts shared nodes repeatedly
  std::size_t expected = 0;
  for (const Array& a : roots)
    if (a.has_value()) expected = std::max<std::size_t>(expected, std::min(a.node()->pending().nodes, many));
  std::unique_lock lock(graph_mutex());
  OpenNodes open = of_one_place(roots, expected, lock, what);
  std::unique_lock<std::recursive_mutex> turn;
  if (Backend* const shared = shared_backend(open)) {
    lock.unlock();
    turn = std::unique_lock(shared->shared_runs());
    lock.lock();
    open = of_one_place(roots, expected, lock, what);
  }
  Moves moves;
  if (std::any_of(open.nodes.begin(), open.nodes.end(), may_move)) {
    moves = settle_moves(open.nodes, lock, what);
    if (!moves.all.empty()) open = OpenNodes(roots, expected);
  }
  if (open.nodes.empty()) return;
  const Modes& modes = *open.nodes.back()->modes;
  const Borrowed<Collection> borrowed;
  Collection& c = *borrowed;
  collect(open, moves.brought, what, c);
  if (c.outputs.empty()) return;
  std::shared_ptr<const LoadedProgram> program;
  if (c.plain) {
    put_structure_of(c);
    program = find_program(c.key, c.leaves, c.outputs.size(), modes);
  }
  if (!program) {
    FlatGraph graph = flat_graph(c);
    lock.unlock();  // nobody waits for another's compile
    std::vector<ValueRef> leaves;
    for (const LaunchLeaf& l : c.leaves) leaves.push_back(l.value);
    program =
        load_program(std::move(graph), leaves, std::vector<bool>(leaves.size(), false), {}, {}, modes, what);
  } else {
    lock.unlock();
  }
  own_numbers(*program, c);
  launch(*program, c.leaves, c.values);
  lock.lock();
  finish(c);
  lock.unlock();
}

}  // namespace

void evaluate(std::span<const Array> roots, const char* what) {
  bool open = false;
  for (const Array& a : roots) {
    if (!a.has_value()) continue;
    if (a.node()->donor()) check_readable(a.node(), what);
    open |= !a.node()->evaluated();
  }
  if (!open) return;
  detail::with_memory(what, 0, [&] { evaluate_open(roots, what); });
}

ValueRef value_of(const Array& a) { return readable_value(a, "value"); }

ValueRef force(const Array& a, const char* what) {
  type_of(a, what);
  evaluate({&a, 1}, what);
  return readable_value(a, what);
}

std::vector<std::byte> host_elements(const Array& a, const char* what) {
  const ValueRef v = force(a, what);
  const Type& t = type_of(a);
  std::vector<std::byte> bytes = host_bytes(what, bytes_of(t.shape, t.dtype));
  gather_to_host(*v, t, bytes.data());
  return bytes;
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

#include "graph/node.h"

#include <fmt/core.h>

#include <algorithm>
#include <new>
#include <string_view>

#include "base/block_pool.h"
#include "base/hash.h"
#include "base/sizes.h"
#include "graph/host_call.h"
#include "graph/key.h"
#include "graph/op.h"
#include "graph/trace_state.h"

namespace shardarray {

std::string to_string(const Type& t) { return short_name(t.dtype) + to_string(t.shape); }

bool operator==(const Attrs& a, const Attrs& b) {
  auto same_sharding = [&] {
    return a.sharding == b.sharding || (a.sharding && b.sharding && *a.sharding == *b.sharding);
  };
  if (!(a.dims == b.dims && a.lo == b.lo && a.hi == b.hi && a.step == b.step && a.shape == b.shape &&
        a.dtype == b.dtype && a.reducer == b.reducer && a.bits == b.bits && a.letters == b.letters &&
        a.uncut == b.uncut && a.axes == b.axes && a.host == b.host && same_sharding()))
    return false;
  if (a.graphs.size() != b.graphs.size()) return false;
  for (std::size_t k = 0; k < a.graphs.size(); k++)
    if (a.graphs[k] != b.graphs[k] && structure(*a.graphs[k]) != structure(*b.graphs[k])) return false;
  return true;
}

std::size_t Attrs::hash() const {
  std::uint64_t h =
      hash_mix(static_cast<std::uint64_t>(dtype) * 16 + static_cast<std::uint64_t>(reducer), bits);
  for (const Shape* s : {&dims, &lo, &hi, &step, &shape}) {
    h = hash_mix(h, s->size());
    for (std::int64_t v : *s) h = hash_mix(h, static_cast<std::uint64_t>(v));
  }
  for (char c : letters) h = hash_mix(h, static_cast<std::uint64_t>(c));
  h = hash_mix(h, uncut);
  h = hash_mix(h, sharding ? sharding->hash() : 0);
  for (const auto& a : axes) h = hash_mix(h, a->id);
  h = hash_mix(h, host ? host->id : 0);
  for (const auto& g : graphs)
    for (std::uint64_t w : structure(*g)) h = hash_mix(h, w);
  return h;
}

std::mutex& graph_mutex() {
  static std::mutex m;
  return m;
}

const Attrs& Node::attrs() const {
  static const Attrs& empty = *new Attrs;
  return attrs_ ? *attrs_ : empty;
}

static std::uint32_t saturating_add(std::uint32_t a, std::uint32_t b) { return a + b < a ? ~0u : a + b; }

static void add_pending(Pending& below, const Node& operand, std::uint32_t output) {
  const Pending p = operand.pending();
  below.depth = std::max(below.depth, p.depth);
  below.nodes = saturating_add(below.nodes, p.nodes);
  below.kilobytes =
      saturating_add(below.kilobytes, p.depth == 0 ? operand.out()[output].kilobytes : p.kilobytes);
}

// `t` was checked by check_type.
static std::uint32_t kilobytes_of(const Type& t) {
  auto bytes = static_cast<std::int64_t>(itemsize(t.dtype));
  for (const std::int64_t n : t.shape) bytes *= std::max<std::int64_t>(1, n);
  return static_cast<std::uint32_t>(std::min<std::int64_t>(bytes >> 10, ~0u));
}

static bool has_slope(const Array& a) {
  return a.has_value() && is_inexact(a.node()->out()[a.index()].type.dtype);
}
// Whether derivatives may pass: never through integers, bools and keys.
static bool carries_slopes(const Op* op, std::span<const Type> outputs) {
  return std::ranges::any_of(outputs, [](const Type& t) { return is_inexact(t.dtype); }) &&
         std::string_view(op->name) != "stop_gradient";
}

template <class A>
Node* Node::make(const Op* op, std::span<A> inputs, std::span<const Type> outputs, AttrsRef attrs,
                 Where where) {
  static_assert(sizeof(Node) % alignof(Output) == 0 && sizeof(Output) % alignof(Array) == 0);
  if (op->form != Form::leaf)  // the values of leaves already exist
    for (const Type& t : outputs) check_type(t, op->name);
  const TraceState& state = trace_state();
  std::uint64_t gradient = state.gradients.empty() ? 0 : state.gradients.front();
  std::uint64_t variable = 0;
  for (const Array& a : inputs) {  // that of its own gradient, else of the youngest
    const std::uint64_t v = a.has_value() ? a.node()->variable : 0;
    if (v == 0 || variable == v || (variable != 0 && variable == gradient) || !has_slope(a)) continue;
    variable = v == gradient ? v : std::max(variable, v);
  }
  if (variable != 0 && !carries_slopes(op, outputs)) variable = 0;
  if (variable != 0 && others_differentiate())
    for (const Array& a : inputs)
      if (has_slope(a)) gradient = joined_gradient(gradient, *a.node(), current_function(op->name));
  const std::size_t bytes = sizeof(Node) + outputs.size() * sizeof(Output) + inputs.size() * sizeof(Array);
  Node* n = new (take_block(bytes)) Node;
  n->bytes_ = static_cast<std::uint32_t>(bytes);
  n->op = op;
  const Where line = detail::call_site.line, around = detail::call_site.around;
  n->where = {line.line ? line : where.line ? where : around, detail::call_site.function};
  n->modes = &current_modes();
  n->seq = next_sequence();
  n->trace = state.current();
  n->gradient = gradient;
  n->variable = variable;
  n->attrs_ = std::move(attrs);
  n->output_count_ = static_cast<std::uint32_t>(outputs.size());
  for (std::size_t k = 0; k < outputs.size(); k++)
    new (n->outputs() + k) Output{outputs[k], nullptr, kilobytes_of(outputs[k])};
  Pending below;
  for (const Array& a : inputs) {
    if (a.has_value()) add_pending(below, *a.node(), a.index());
    n->take_operand(n->operands() + n->operand_count_++, a);
  }
  n->set_pending({below.depth + 1, saturating_add(below.nodes, 1), below.kilobytes});
  return n;
}
template Node* Node::make(const Op*, std::span<const ArrayCref>, std::span<const Type>, AttrsRef, Where);
template Node* Node::make(const Op*, std::span<const Array>, std::span<const Type>, AttrsRef, Where);

void Node::take_operand(Array* to, const Array& a) {
  if (!a.has_value()) {
    new (to) Array();
    return;
  }
  a.node()->counts_.fetch_add(reader + 1, std::memory_order_relaxed);
  new (to) Array(a.node(), a.index());
}
void Node::set_operand(std::size_t k, const Array& a) {
  Array& mine = own()[k];
  if (mine.has_value()) mine.node()->counts_.fetch_sub(reader, std::memory_order_release);
  const Array before = std::move(mine);
  take_operand(&mine, a);
}

void Node::destroy() {
  for (Output& o : out()) o.~Output();
  const std::size_t bytes = bytes_;
  this->~Node();
  give_block(this, bytes);
}

// Dead nodes are linked through link_: dropping a chain of a million nodes needs no stack.
void Node::drop(Node* n, const Array* handle) {
  if (n->counts_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (n->donor()) [[unlikely]]
    given_away_ends(n, handle);
  n->link_ = nullptr;
  for (Node* dead = n; dead;) {
    Node* d = dead;
    dead = d->link_;
    for (Array& a : d->own()) {
      Node* c = a.node();
      new (&a) Array();  // its count is dropped below
      if (c && c->counts_.fetch_sub(reader + 1, std::memory_order_acq_rel) == reader + 1) {
        c->link_ = dead;
        dead = c;
      }
    }
    d->destroy();
  }
}

void Node::release_operands(std::vector<Array>& dead) {
  for (Array& a : own()) {
    if (a.has_value()) a.node()->counts_.fetch_sub(reader, std::memory_order_release);
    dead.push_back(std::move(a));
  }
  operand_count_ = 0;
}

const Type& type_of(const Array& a, const char* what) {
  if (!a.has_value())
    throw Error(fmt::format("{}: the array is absent. Array() holds nothing; ask has_value() first.",
                            current_function(what)));
  return a.node()->type(a.index());
}

std::vector<Array> outputs_of(Node* n) {
  std::vector<Array> r;
  r.reserve(n->out().size());
  for (std::size_t k = 0; k < n->out().size(); k++) r.push_back(handle(n, static_cast<std::uint32_t>(k)));
  Node::drop(n);
  return r;
}

void ShardedArray::retain() const {
  if (node_) node_->retain();
}
void ShardedArray::drop() const { Node::drop(node_, this); }

}  // namespace shardarray

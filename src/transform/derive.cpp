// Forward mode (tangents beside values) and its transpose. Reverse mode is linearization, then transposition.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "graph/trace_state.h"
#include "ops/asked.h"
#include "ops/record.h"
#include "transform/trace.h"

namespace shardarray {

static std::vector<Type> operand_types(const Node& n) {
  std::vector<Type> t;
  for (const Array& a : n.in()) t.push_back(type_of(a));
  return t;
}

// May communicate between neighbours: boxes, or scan carries.
static bool may_move(const Node& n) {
  if (n.op->boxes) return true;
  if (n.op->form != Form::library) return false;
  const std::vector<Type> in = operand_types(n);
  return n.op->rule({n.op, in, {}, &n.attrs()}).has(Role::scan);
}

static Arrays linear_tangents(Node* n, std::span<const Array> in, std::span<const Array> tangents) {
  const std::vector<Type> types = operand_types(*n);
  const Call call{n->op, types, {}, &n->attrs()};
  Arrays operands(in.begin(), in.end());
  for (std::size_t k = 0; k < in.size(); k++) {
    const Linear l = linearity(call, static_cast<int>(k));
    if (tangents[k].has_value() && l == Linear::no) return {};
    if (l == Linear::joint) operands[k] = tangents[k].has_value() ? tangents[k] : zeros_of(type_of(in[k]));
    if (l == Linear::each && tangents[k].has_value()) operands[k] = tangents[k];
  }
  return record_again(*n, operands);
}

Arrays push_forward(Node* n, std::span<const Array> in, std::span<const Array> out,
                    std::span<const Array> tangents) {
  Arrays none_flows(n->out().size());
  if (std::none_of(tangents.begin(), tangents.end(), [](const Array& t) { return t.has_value(); }))
    return none_flows;
  if (std::none_of(n->out().begin(), n->out().end(), [](const auto& o) { return is_inexact(o.type.dtype); }))
    return none_flows;
  const detail::RecordedSite site(n->where);
  const ScopedModes modes(n->modes);
  Arrays result;
  if (n->op->jvp) result = n->op->jvp({*n, in, out, tangents, calculus()});
  else result = linear_tangents(n, in, tangents);
  if (result.empty())
    throw Error(fmt::format("grad: {} has no derivative ({}:{}). Use stop_gradient on its operand.",
                            n->op->name, n->where.file, n->where.line));
  return result;
}

static void accumulate(ArrayMap<Array>& cotangents, const Array& of, const Array& g) {
  if (!g.has_value()) return;
  Array& c = cotangents[key(of)];
  c = add_or(c, g);
}

LinearMap linear_map(Arrays outputs, Arrays variables) {
  LinearMap map{std::move(variables), std::move(outputs), {}, {}};
  std::unordered_set<Node*>& linear = map.linear;
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  for (const Array& v : map.variables) {
    linear.insert(v.node());
    oldest = std::min(oldest, v.node()->seq);
  }
  const auto recent = [&](Node* n) { return n->seq >= oldest; };
  for (Node* n : topological(std::span<const Array>(map.outputs), recent)) {
    const auto carries = [&](const Array& a) { return linear.contains(a.node()); };
    if (n->op->form == Form::leaf || std::none_of(n->in().begin(), n->in().end(), carries)) continue;
    linear.insert(n);
    map.nodes.push_back(n);
  }
  return map;
}

Arrays pull_back(const LinearMap& map, std::span<const Array> cts) {
  const auto& [variables, outputs, linear, nodes] = map;
  const RecordingWalk walk;
  ArrayMap<Array> cotangents;
  for (std::size_t k = 0; k < outputs.size(); k++)
    if (outputs[k].has_value() && linear.contains(outputs[k].node()))
      accumulate(cotangents, outputs[k], cts[k]);
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    Node* n = *it;
    Arrays given;
    for (std::uint32_t k = 0; k < n->out().size(); k++) {
      auto found = cotangents.find({n, k});
      given.push_back(found == cotangents.end() ? Array() : found->second);
    }
    if (std::none_of(given.begin(), given.end(), [](const Array& g) { return g.has_value(); })) continue;
    std::vector<bool> flows;
    for (const Array& a : n->in()) flows.push_back(linear.contains(a.node()));
    if (!n->op->transpose)
      throw Error(
          fmt::format("grad: {} cannot be transposed ({}:{}). Reverse mode needs the transpose of everything "
                      "that is linear in a variable. Use jvp, or stop_gradient on its operand.",
                      n->op->name, n->where.file, n->where.line));
    const detail::RecordedSite site(n->where);
    const ScopedModes modes(n->modes);
    if (n->modes->policy == Policy::strict &&
        may_move(*n))  // forward, the movement was asked for or there was none
      for (Array& g : given)
        if (g.has_value()) g = asked(g);
    const Arrays r = n->op->transpose({*n, n->in(), given, flows, calculus()});
    for (std::size_t k = 0; k < r.size(); k++)
      if (flows[k]) accumulate(cotangents, n->in()[k], r[k]);
  }
  Arrays result;
  for (const Array& v : variables) {
    auto found = cotangents.find(key(v));
    result.push_back(found == cotangents.end() ? Array() : found->second);
  }
  return result;
}

static Graph derive_graph(const Graph& g, const std::vector<bool>& has) {
  Graph r;
  ArrayMap<Array> tangents;
  for (const Array& a : g.in) r.in.push_back(placeholder(type_of(a)));
  const Arrays x = r.in;
  for (std::size_t k = 0; k < has.size(); k++)
    if (has[k]) tangents[key(x[k])] = r.in.emplace_back(placeholder(type_of(g.in[k])));
  r.out = replay(g, x, [&](Node* n, std::span<const Array> in) {
    Arrays dx, out = record_again(*n, in);
    for (const Array& a : in) {
      auto it = tangents.find(key(a));
      dx.push_back(it == tangents.end() ? Array() : it->second);
    }
    const Arrays dy = push_forward(n, in, out, dx);
    for (std::size_t k = 0; k < dy.size(); k++)
      if (dy[k].has_value()) tangents[key(out[k])] = dy[k];
    return out;
  });
  const std::size_t count = r.out.size();
  for (std::size_t k = 0; k < count; k++) {
    auto it = tangents.find(key(r.out[k]));
    r.out.push_back(it == tangents.end() ? zeros_of(type_of(r.out[k])) : it->second);
  }
  return r;
}

static Graph transpose_graph(const Graph& g, const std::vector<bool>& linear) {
  Graph r;
  Arrays x, variables, cts;
  for (std::size_t k = 0; k < g.in.size(); k++) {
    x.push_back(placeholder(type_of(g.in[k])));
    (linear[k] ? variables : r.in).push_back(x.back());
  }
  for (const Array& o : g.out) {
    cts.push_back(placeholder(type_of(o)));
    r.in.push_back(cts.back());
  }
  r.out = pull_back(linear_map(inline_graph(g, x), variables), cts);
  for (std::size_t k = 0; k < r.out.size(); k++)
    if (!r.out[k].has_value()) r.out[k] = zeros_of(type_of(variables[k]));
  return r;
}

static Graph batched_graph(const Graph& g, const std::vector<bool>& mapped, std::shared_ptr<const Axis> axis,
                           std::vector<bool>& out_mapped) {
  Graph r;
  for (std::size_t k = 0; k < g.in.size(); k++) {
    Type t = type_of(g.in[k]);
    if (mapped[k]) t.shape.insert(0, axis->size);
    r.in.push_back(placeholder(t));
  }
  const OpenTrace open;  // collects the effects
  r.out = batch_graph(g, r.in, mapped, axis, out_mapped);
  r.effects = trace_state().effects.back();
  return r;
}

const Calculus& calculus() {
  static const Calculus c{derive_graph, transpose_graph, batched_graph};
  return c;
}

}  // namespace shardarray

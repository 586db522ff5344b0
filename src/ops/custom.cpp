// Calls of functions with user-defined derivatives: custom_jvp, custom_vjp. See graph/custom_rule.h.
#include <fmt/core.h>

#include <algorithm>

#include "graph/custom_rule.h"
#include "graph/topological.h"
#include "graph/trace_state.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

using RuleRef = std::shared_ptr<const CustomRule>;

namespace {

std::vector<Type> types_of(std::span<const Array> arrays) {
  std::vector<Type> types;
  for (const Array& a : arrays) types.push_back(type_of(a));
  return types;
}

std::shared_ptr<const CustomGraphs> graphs_of(const CustomRule& rule, std::span<const Array> operands) {
  if (rule.made) return rule.made;
  return std::make_shared<const CustomGraphs>(rule.make(types_of(operands.first(rule.arguments))));
}

// The rule of a call, whose only graph is a CustomGraph.
const RuleRef& rule_of(const Attrs& a) { return static_cast<const CustomGraph&>(*a.graphs[0]).rule; }

bool is_float(const Array& a) { return is_inexact(type_of(a).dtype); }

Types custom_type(const Call& c) { return op_call.type(c); }
Rule custom_call_rule(const Call& c) { return op_call.rule(c); }

// The arguments and the derivative's captures.
Arrays forward_operands(const CustomRule& rule, std::span<const Array> in) {
  Arrays operands(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(rule.arguments));
  operands.insert(operands.end(), in.end() - static_cast<std::ptrdiff_t>(rule.captured), in.end());
  return operands;
}

Arrays called(const Graph& g, const Arrays& operands) {
  return g.out.empty() ? Arrays() : primitive::call(g, operands);
}

Arrays custom_derivative(const JvpArgs& v) {
  const CustomRule& rule = *rule_of(v.node.attrs());
  for (std::size_t k = rule.arguments; k < v.in.size(); k++)
    if (v.tangents[k].has_value())
      throw Error(fmt::format(
          "{}: a derivative is asked for by an array {} that the function captures. Its derivative knows its "
          "arguments only. Pass the array as an argument, or capture stop_gradient of it.",
          rule.function, to_string(type_of(v.in[k]))));
  const auto graphs = graphs_of(rule, v.in);
  Arrays operands = forward_operands(rule, v.in), tangents, floating;
  for (std::size_t k = 0; k < rule.arguments; k++)
    if (is_float(v.in[k]))
      tangents.push_back(v.tangents[k].has_value() ? v.tangents[k] : zeros_of(type_of(v.in[k])));
  if (rule.is_vjp) {
    const Arrays residuals = called(graphs->forward, operands);
    Arrays in(operands.begin() + static_cast<std::ptrdiff_t>(rule.arguments), operands.end());
    in.insert(in.end(), residuals.begin(), residuals.end());
    Attrs a;
    a.graphs = {std::make_shared<const Graph>(graphs->backward)};
    a.lo = {static_cast<std::int64_t>(in.size())};
    in.insert(in.end(), tangents.begin(), tangents.end());
    floating = record_all(op_custom_linear, in, std::make_shared<const Attrs>(std::move(a)), {});
  } else {
    operands.insert(operands.end(), tangents.begin(), tangents.end());
    floating = called(graphs->forward, operands);
  }
  Arrays r;
  std::size_t next = 0;
  for (const Array& out : v.out) r.push_back(is_float(out) ? floating[next++] : Array());
  return r;
}

// ---------------------------------------------------------------- rows
using Flags = std::vector<bool>;

Graph batched_inside(const Graph& g, const Flags& mapped, const std::shared_ptr<const Axis>& axis,
                     const Calculus& calculus, Flags& out_mapped) {
  Graph r = calculus.batch(g, mapped, axis, out_mapped);
  r.effects.clear();
  return r;
}

// Results, their tangents and cotangents always have rows; residuals if they depend on mapped inputs; cotangents of arguments if the
// arguments do.
CustomGraphs batched_graphs(const CustomRule& rule, const CustomGraphs& graphs, const Flags& mapped,
                            const std::vector<bool>& floating, const std::shared_ptr<const Axis>& axis,
                            const Calculus& calculus) {
  CustomGraphs r;
  Flags in(mapped.begin(), mapped.begin() + static_cast<std::ptrdiff_t>(rule.arguments)), of_arguments;
  const Flags captured(mapped.end() - static_cast<std::ptrdiff_t>(rule.captured), mapped.end());
  in.insert(in.end(), captured.begin(), captured.end());
  for (std::size_t k = 0; k < rule.arguments; k++)
    if (floating[k]) of_arguments.push_back(mapped[k]);
  if (!rule.is_vjp) in.insert(in.end(), of_arguments.begin(), of_arguments.end());
  Flags out;
  r.forward = batched_inside(graphs.forward, in, axis, calculus, out);
  if (!rule.is_vjp) {
    for (std::size_t k = 0; k < out.size(); k++)
      r.forward.out[k] = with_placed_rows(r.forward.out[k], out[k], axis);
    return r;
  }
  Flags back = captured, gone;
  back.insert(back.end(), out.begin(), out.end());
  back.resize(graphs.backward.in.size(), true);
  r.backward = batched_inside(graphs.backward, back, axis, calculus, gone);
  for (std::size_t k = 0; k < gone.size(); k++) {
    Array& x = r.backward.out[k];
    if (of_arguments[k]) x = with_placed_rows(x, gone[k], axis);
    else if (gone[k]) x = primitive::reduce(Reducer::sum, x, {0});
    else x = primitive::mul(x, primitive::full(x.shape(), x.dtype(), static_cast<double>(axis->size)));
  }
  return r;
}

RuleRef batched_rule(const RuleRef& rule, const BatchArgs& b) {
  const auto next = std::make_shared<CustomRule>(*rule);
  std::vector<bool> floating;
  for (std::size_t k = 0; k < rule->arguments; k++) floating.push_back(is_float(b.in[k]));
  if (rule->made)
    next->made = std::make_shared<const CustomGraphs>(
        batched_graphs(*rule, *rule->made, b.mapped, floating, b.axis, b.graphs));
  next->make = [rule, mapped = b.mapped, floating, axis = b.axis,
                graphs = &b.graphs](std::span<const Type> types) {
    std::vector<Type> rows(types.begin(), types.end());
    for (std::size_t k = 0; k < rows.size(); k++)
      if (mapped[k]) rows[k].shape.erase(0);
    return batched_graphs(*rule, rule->make(rows), mapped, floating, axis, *graphs);
  };
  return next;
}

Batched custom_batch(const BatchArgs& b) {
  const RecordingWalk walk;
  Flags out;
  Graph body = batched_inside(*b.node.attrs().graphs[0], b.mapped, b.axis, b.graphs, out);
  for (std::size_t k = 0; k < out.size(); k++) body.out[k] = with_placed_rows(body.out[k], out[k], b.axis);
  Attrs a;
  a.graphs = {std::make_shared<const CustomGraph>(std::move(body), batched_rule(rule_of(b.node.attrs()), b))};
  Batched r{record_all(op_custom, b.in, std::make_shared<const Attrs>(std::move(a)), {}), {}};
  r.mapped.assign(r.out.size(), true);
  return r;
}

// ---------------------------------------------------------------- the linear part of custom_vjp
// attrs.lo: the number of operands that are not tangents. Its results' cotangents are the cotangents that the backward graph takes.
std::size_t first_tangent(const Attrs& a) { return static_cast<std::size_t>(a.lo[0]); }

Types linear_types(const Call& c) {
  const Graph& g = *c.attrs->graphs[0];
  Types types;
  for (std::size_t k = first_tangent(*c.attrs); k < g.in.size(); k++) types.push_back(type_of(g.in[k]));
  return types;
}

Rule linear_rule(const Call& c) { return whole_rule(c, linear_types(c)); }

Arrays linear_transpose(const TransposeArgs& t) {
  const Attrs& attrs = t.node.attrs();
  const std::size_t first = first_tangent(attrs);
  Arrays operands(t.in.begin(), t.in.begin() + static_cast<std::ptrdiff_t>(first));
  for (std::size_t k = 0; k < t.cotangents.size(); k++)
    operands.push_back(t.cotangents[k].has_value() ? t.cotangents[k] : zeros_of(t.node.type(k)));
  const Arrays given = called(*attrs.graphs[0], operands);
  Arrays r(first);
  for (std::size_t k = first; k < t.in.size(); k++) r.push_back(t.linear[k] ? given[k - first] : Array());
  return r;
}

[[noreturn]] void refuse_forward_mode() {
  throw Error(
      "custom_vjp: forward-mode derivatives (jvp, jacfwd, hessian, linearize) cannot pass a function with "
      "custom_vjp. Its author gave its reverse mode only. Use grad, vjp or jacrev, or give it a custom_jvp.");
}

}  // namespace

// Calls attrs.graphs[0], a CustomGraph, on the operands. On tangents (in another function's rule) it is as linear as the function itself,
// and transposes like a call.
SHARDARRAY_OP op_custom{.name = "custom_call",
                        .form = Form::call,
                        .rule = custom_call_rule,
                        .type = custom_type,
                        .jvp = custom_derivative,
                        .transpose = [](const TransposeArgs& t) { return op_call.transpose(t); },
                        .batch = custom_batch};

// Tangents of the results, linear in those of the arguments; only its transpose is known. Never executed.
SHARDARRAY_OP op_custom_linear{.name = "custom_vjp",
                               .form = Form::collective,
                               .rule = linear_rule,
                               .type = linear_types,
                               .jvp = [](const JvpArgs&) -> Arrays { refuse_forward_mode(); },
                               .transpose = linear_transpose,
                               .batch = [](const BatchArgs&) -> Batched { refuse_forward_mode(); },
                               .trait = Trait::reverse_only};

void refuse_reverse_only(std::span<Node* const> nodes) {
  for (const Node* n : nodes) {
    if (n->op->trait == Trait::reverse_only) refuse_forward_mode();
    for (const auto& g : n->attrs().graphs)
      refuse_reverse_only(topological(std::span<const Array>(g->out), [](Node*) { return true; }));
  }
}

}  // namespace shardarray

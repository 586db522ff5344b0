// Constraints and calls of graphs.
#include <fmt/core.h>

#include <algorithm>

#include "graph/topological.h"
#include "ops/rules.h"
#include "ops/table.h"

namespace shardarray {

using namespace rules;

// ---------------------------------------------------------------- constraint
// A constraint may move its operand to other devices. What is computed from the operand there stays there, so the cotangent
// has to come back: tangents pass through `beside`, which does nothing on their way and brings cotangents home.
static Array at_home(const Array& tangent, const Array& of) { return record(op_beside, {tangent, of}); }

constinit const Op op_constraint{
    .name = "constraint",
    .form = Form::constraint,
    .rule = pointwise_rule,
    .linearity = joint,
    .jvp =
        [](const JvpArgs& v) {
          return Arrays{record(op_constraint, {at_home(v.tangents[0], v.in[0])}, v.node.attrs())};
        },
    .transpose =
        [](const TransposeArgs& t) {
          return Arrays{record(op_constraint, {t.cotangents[0]}, t.node.attrs())};
        },
    .batch =
        [](const BatchArgs& b) {
          Attrs a = b.node.attrs();
          a.lo = {a.lo.empty() ? 1 : a.lo[0] + 1};
          if (b.axis->region)
            a.hi.push_back(from_last(0, b.in[0].shape().size()));  // rows stay on their devices
          return mapped({record(op_constraint, b.in, std::move(a))});
        }};

// Operand 0 on the devices of operand 1, of which nothing else matters. It is its own transpose: a cotangent goes where the
// tangents come from, and that is where operand 1 is. Within one program all is on the same devices: there it is gone.
constinit const Op op_beside{
    .name = "beside",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .linearity = [](const Call&, int operand) { return operand == 0 ? Linear::each : Linear::no; },
    .jvp =
        [](const JvpArgs& v) {
          const Array& t = v.tangents[0];
          return Arrays{t.has_value() ? record(op_beside, {at_home(t, v.in[0]), v.in[1]}) : Array()};
        },
    .transpose =
        [](const TransposeArgs& t) {
          return Arrays{record(op_beside, {t.cotangents[0], t.in[1]}), Array()};
        },
    .batch =
        [](const BatchArgs& b) {
          return Batched{{record(op_beside, b.in)}, {b.mapped[0]}};
        },
    .scalar = [](ScalarArgs& s) { s.out[0] = s.in[0]; }};

// ---------------------------------------------------------------- call
static Arrays call(Graph g, std::span<const Array> in) {
  Attrs a;
  a.graphs = {std::make_shared<const Graph>(std::move(g))};
  return record_all(op_call, in, std::make_shared<const Attrs>(std::move(a)), {});
}

static Types call_type(const Call& c) {
  Types types;
  for (const Array& a : c.attrs->graphs[0]->out) types.push_back(type_of(a, "call"));
  return types;
}

// Calls are inlined before anything is placed; until then nothing may be cut.
static Rule call_rule(const Call& c) {
  Rule r;
  auto whole = [&](const Type& t) {
    std::vector<DimFactors> dims;
    for (std::int64_t size : t.shape) dims.push_back(add_factor(r, size, Role::whole));
    return dims;
  };
  for (const Type& t : c.in) r.operands.push_back(whole(t));
  for (const Type& t : call_type(c)) r.results.push_back(whole(t));
  return r;
}

// A pmap, whose operands come over from other devices.
static bool is_mapped(const Graph& g) {
  for (const Node* n : topological(std::span<const Array>(g.out), [](Node*) { return true; })) {
    const Attrs& a = n->attrs();
    if (n->op == &op_constraint && a.bits == 1) return true;
    if (std::any_of(a.graphs.begin(), a.graphs.end(), [](const auto& inner) { return is_mapped(*inner); }))
      return true;
  }
  return false;
}

// A call of the graph that gives only the tangents: linear in them.
static Arrays call_jvp(const JvpArgs& v) {
  std::vector<bool> has;
  Arrays operands(v.in.begin(), v.in.end());
  const bool comes_over = is_mapped(*v.node.attrs().graphs[0]);
  for (std::size_t k = 0; k < v.in.size(); k++) {
    const Array& t = v.tangents[k];
    has.push_back(t.has_value());
    if (t.has_value()) operands.push_back(comes_over ? at_home(t, v.in[k]) : t);
  }
  Graph g = v.graphs.derive(*v.node.attrs().graphs[0], has);
  Arrays tangents;
  for (std::size_t k = 0; k < v.out.size(); k++)
    if (is_inexact(v.out[k].dtype())) tangents.push_back(g.out[v.out.size() + k]);
  g.out = tangents;
  const Arrays given = call(std::move(g), operands);
  Arrays r;
  for (std::size_t k = 0, next = 0; k < v.out.size(); k++)
    r.push_back(is_inexact(v.out[k].dtype()) ? given[next++] : Array());
  return r;
}

static Arrays call_transpose(const TransposeArgs& t) {
  Arrays operands;
  for (std::size_t k = 0; k < t.in.size(); k++)
    if (!t.linear[k]) operands.push_back(t.in[k]);
  for (std::size_t k = 0; k < t.cotangents.size(); k++)
    operands.push_back(t.cotangents[k].has_value() ? t.cotangents[k] : zeros_of(t.node.type(k)));
  const Arrays given = call(t.graphs.transpose(*t.node.attrs().graphs[0], t.linear), operands);
  Arrays r;
  for (std::size_t k = 0, next = 0; k < t.in.size(); k++) r.push_back(t.linear[k] ? given[next++] : Array());
  return r;
}

constinit const Op op_call{.name = "call",
                           .form = Form::call,
                           .rule = call_rule,
                           .type = call_type,
                           .jvp = call_jvp,
                           .transpose = call_transpose,
                           .batch = [](const BatchArgs& b) {
                             Batched r;
                             r.out = call(
                                 b.graphs.batch(*b.node.attrs().graphs[0], b.mapped, b.axis, r.mapped), b.in);
                             return r;
                           }};

static constexpr const Op* structure_table[] = {&op_constraint, &op_beside, &op_call};
constinit const std::span<const Op* const> structure_ops = structure_table;

}  // namespace shardarray

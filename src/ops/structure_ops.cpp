// Constraints and calls of graphs.
#include <fmt/core.h>

#include "ops/rules.h"
#include "ops/table.h"

namespace shardarray {

using namespace rules;

// ---------------------------------------------------------------- constraint
constinit const Op op_constraint{
    .name = "constraint",
    .form = Form::constraint,
    .rule = pointwise_rule,
    .linearity = joint,
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

// A call of the graph that gives only the tangents: linear in them.
static Arrays call_jvp(const JvpArgs& v) {
  std::vector<bool> has;
  Arrays operands(v.in.begin(), v.in.end());
  for (const Array& t : v.tangents) {
    has.push_back(t.has_value());
    if (t.has_value()) operands.push_back(t);
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

static constexpr const Op* structure_table[] = {&op_constraint, &op_call};
constinit const std::span<const Op* const> structure_ops = structure_table;

}  // namespace shardarray

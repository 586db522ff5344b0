// A call of a graph.
#include <algorithm>

#include "graph/topological.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

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
    if (n->op->form == Form::constraint && a.bits == 1) return true;
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
    if (t.has_value()) operands.push_back(comes_over ? primitive::beside(t, v.in[k]) : t);
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

// attrs.graphs[0] on the operands.
SHARDARRAY_OP op_call{.name = "call",
                      .form = Form::call,
                      .rule = call_rule,
                      .type = call_type,
                      .jvp = call_jvp,
                      .transpose = call_transpose,
                      .batch = [](const BatchArgs& b) {
                        Batched r;
                        r.out =
                            call(b.graphs.batch(*b.node.attrs().graphs[0], b.mapped, b.axis, r.mapped), b.in);
                        return r;
                      }};

}  // namespace shardarray

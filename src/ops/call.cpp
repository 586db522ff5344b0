// A call of a graph.
#include <algorithm>

#include "graph/topological.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

static bool is_checkpoint(const Node& n) { return n.attrs().bits == 1; }

static Types call_type(const Call& c) {
  Types types;
  for (const Array& a : c.attrs->graphs[0]->out) types.push_back(type_of(a, "call"));
  return types;
}

// Calls are inlined before placement; until then nothing may be sharded.
static Rule call_rule(const Call& c) { return whole_rule(c, call_type(c)); }

// Whether it contains a pmap, whose operands are moved from other devices.
static bool is_mapped(const Graph& g) {
  for (const Node* n : topological(std::span<const Array>(g.out), [](Node*) { return true; })) {
    const Attrs& a = n->attrs();
    if (n->op->form == Form::constraint && a.bits == 1) return true;
    if (std::any_of(a.graphs.begin(), a.graphs.end(), [](const auto& inner) { return is_mapped(*inner); }))
      return true;
  }
  return false;
}

// Calls a graph that returns only the tangents: linear in them.
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
  const Arrays given = primitive::call(std::move(g), operands, is_checkpoint(v.node));
  Arrays r;
  for (std::size_t k = 0, next = 0; k < v.out.size(); k++)
    r.push_back(is_inexact(v.out[k].dtype()) ? given[next++] : Array());
  return r;
}

// A checkpoint's recomputation depends on the cotangents: otherwise it would be merged with the forward computation, and the result stored.
static Arrays call_transpose(const TransposeArgs& t) {
  Arrays operands, cotangents, come;
  for (std::size_t k = 0; k < t.cotangents.size(); k++) {
    if (t.cotangents[k].has_value()) come.push_back(t.cotangents[k]);
    cotangents.push_back(t.cotangents[k].has_value() ? t.cotangents[k] : zeros_of(t.node.type(k)));
  }
  const bool again = is_checkpoint(t.node);
  for (std::size_t k = 0; k < t.in.size(); k++)
    if (!t.linear[k]) operands.push_back(again ? primitive::behind(t.in[k], come) : t.in[k]);
  operands.insert(operands.end(), cotangents.begin(), cotangents.end());
  const Arrays given =
      primitive::call(t.graphs.transpose(*t.node.attrs().graphs[0], t.linear), operands, again);
  Arrays r;
  for (std::size_t k = 0, next = 0; k < t.in.size(); k++) r.push_back(t.linear[k] ? given[next++] : Array());
  return r;
}

// Calls attrs.graphs[0] on the operands; attrs.bits: 1 for a checkpoint.
SHARDARRAY_OP op_call{.name = "call",
                      .form = Form::call,
                      .rule = call_rule,
                      .type = call_type,
                      .jvp = call_jvp,
                      .transpose = call_transpose,
                      .batch = [](const BatchArgs& b) {
                        Batched r;
                        r.out = primitive::call(
                            b.graphs.batch(*b.node.attrs().graphs[0], b.mapped, b.axis, r.mapped), b.in,
                            is_checkpoint(b.node));
                        return r;
                      }};

Arrays primitive::call(Graph g, std::span<const Array> operands, bool is_checkpoint) {
  Attrs a;
  a.bits = is_checkpoint ? 1 : 0;
  a.graphs = {std::make_shared<const Graph>(std::move(g))};
  return record_all(op_call, operands, std::make_shared<const Attrs>(std::move(a)), {});
}

// The other operands may have any shape.
static Rule behind_rule(const Call& c) {
  Rule r;
  for (const Type& t : c.in) r.operands.push_back(own_factors(r, t, Role::pass));
  r.results.push_back(r.operands[0]);
  return r;
}

// Operand 0, not read before the other operands are computed.
SHARDARRAY_OP op_behind{.name = "optimization_barrier",
                        .form = Form::scalar,
                        .rule = behind_rule,
                        .jvp = [](const JvpArgs& v) { return Arrays{v.tangents[0]}; },
                        .batch =
                            [](const BatchArgs& b) {
                              return Batched{{primitive::behind(b.in[0], b.in.subspan(1))}, {b.mapped[0]}};
                            },
                        .scalar = [](ScalarArgs& s) { s.out[0] = s.in[0]; },
                        .trait = Trait::behind};

Array primitive::behind(const Array& x, std::span<const Array> others) {
  Arrays in{x};
  in.insert(in.end(), others.begin(), others.end());
  return record_one(op_behind, in, nullptr);
}

}  // namespace shardarray

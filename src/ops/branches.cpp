// cond, switch_ and while_loop: graphs whose calls depend on values. See graph/branches.h.
#include "graph/branches.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "graph/iteration.h"
#include "graph/trace_state.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

namespace {

using Flags = std::vector<bool>;

std::shared_ptr<const Graph> shared(Graph g) { return std::make_shared<const Graph>(std::move(g)); }

Types result_types(const Graph& g) {
  Types types;
  for (const Array& a : g.out) types.push_back(type_of(a));
  return types;
}

void give_rows(Graph& g, const Flags& mapped, const Flags& wanted, const std::shared_ptr<const Axis>& axis) {
  for (std::size_t k = 0; k < g.out.size(); k++)
    if (wanted[k]) g.out[k] = with_placed_rows(g.out[k], mapped[k], axis);
}
Flags either(Flags a, const Flags& b) {
  for (std::size_t k = 0; k < a.size(); k++) a[k] = a[k] || b[k];
  return a;
}

// `a` in rows where `flags` is true, else `b`.
Array select_rows(const Array& flags, const Array& a, const Array& b) {
  const auto rank = static_cast<std::int64_t>(a.shape().size());
  return primitive::select(primitive::broadcast(flags, a.shape(), {-rank}), a, b);
}

// ---------------------------------------------------------------- choose
Types choose_type(const Call& c) { return result_types(*c.attrs->graphs[0]); }
Rule choose_rule(const Call& c) { return whole_rule(c, choose_type(c)); }

// Returns only tangents, linear in those of the operands.
Arrays choose_jvp(const JvpArgs& v) {
  const Choice c = Choice::of(v.node.attrs());
  const auto values = v.in.subspan(1);
  Flags has;
  Arrays operands(values.begin(), values.end());
  for (const Array& t : v.tangents.subspan(1)) {
    has.push_back(t.has_value());
    if (t.has_value()) operands.push_back(t);
  }
  std::vector<Graph> derived;
  Flags flows(v.out.size(), false);
  for (const auto& branch : c.branches) {
    derived.push_back(v.graphs.derive(*branch, has));
    const Graph& g = derived.back();
    Flags tangents(g.in.size(), true);
    std::fill_n(tangents.begin(), has.size(), false);
    const Flags reached = depending(g, tangents);
    for (std::size_t k = 0; k < flows.size(); k++)
      if (is_inexact(v.out[k].dtype()) && reached[v.out.size() + k]) flows[k] = true;
  }
  Choice d;
  for (Graph& g : derived) {
    Graph only{g.in, {}, {}};
    for (std::size_t k = 0; k < flows.size(); k++)
      if (flows[k]) only.out.push_back(g.out[flows.size() + k]);
    d.branches.push_back(shared(std::move(only)));
  }
  Arrays r(flows.size());
  if (std::find(flows.begin(), flows.end(), true) == flows.end()) return r;
  const Arrays given = record_choice(std::move(d), v.in[0], operands);
  for (std::size_t k = 0, next = 0; k < flows.size(); k++)
    if (flows[k]) r[k] = given[next++];
  return r;
}

Arrays choose_transpose(const TransposeArgs& t) {
  const Choice c = Choice::of(t.node.attrs());
  const Flags linear(t.linear.begin() + 1, t.linear.end());
  Arrays operands;
  for (std::size_t k = 0; k < linear.size(); k++)
    if (!linear[k]) operands.push_back(t.in[k + 1]);
  for (std::size_t k = 0; k < t.cotangents.size(); k++)
    operands.push_back(t.cotangents[k].has_value() ? t.cotangents[k] : zeros_of(t.node.type(k)));
  Choice back;
  for (const auto& branch : c.branches) back.branches.push_back(shared(t.graphs.transpose(*branch, linear)));
  const Arrays given = record_choice(std::move(back), t.in[0], operands);
  Arrays r(1);
  std::size_t next = 0;
  for (const bool l : linear) r.push_back(l ? given[next++] : Array());
  return r;
}

// The index differs per row: all branches run, and each row selects its own.
Batched select_of_all(const BatchArgs& b, const std::vector<Graph>& branches) {
  Arrays result;
  for (std::size_t branch = 0; branch < branches.size(); branch++) {
    const Arrays out = primitive::call(branches[branch], b.in.subspan(1));
    if (branch == 0) {
      result = out;
      continue;
    }
    const Array chosen =
        primitive::binary(op_eq, b.in[0], primitive::like_whole(b.in[0], static_cast<std::int64_t>(branch)));
    for (std::size_t k = 0; k < out.size(); k++) result[k] = select_rows(chosen, out[k], result[k]);
  }
  const std::size_t count = result.size();
  return {std::move(result), Flags(count, true)};
}

Batched choose_batch(const BatchArgs& b) {
  const RecordingWalk walk;
  const Choice c = Choice::of(b.node.attrs());
  const Flags operands(b.mapped.begin() + 1, b.mapped.end());
  std::vector<Graph> graphs;
  std::vector<Flags> mapped;
  Flags any(b.node.out().size(), b.mapped[0]);
  for (const auto& branch : c.branches) {
    mapped.emplace_back();
    graphs.push_back(b.graphs.batch(*branch, operands, b.axis, mapped.back()));
    any = either(any, mapped.back());
  }
  for (std::size_t k = 0; k < graphs.size(); k++) give_rows(graphs[k], mapped[k], any, b.axis);
  if (b.mapped[0]) return select_of_all(b, graphs);
  Choice rows;
  for (Graph& g : graphs) rows.branches.push_back(shared(std::move(g)));
  return {record_choice(std::move(rows), b.in[0], b.in.subspan(1)), any};
}

// ---------------------------------------------------------------- repeat
Types repeat_type(const Call& c) { return result_types(*c.attrs->graphs[1]); }
Rule repeat_rule(const Call& c) { return whole_rule(c, repeat_type(c)); }

// The least fixed point of flags on carries: `becomes` maps the flags of the body's inputs to those of its results.
Flags closed_over_carries(const Repetition& r, Flags of_operands,
                          const std::function<Flags(const Flags& of_body)>& becomes) {
  for (bool grew = true; grew;) {
    grew = false;
    const Flags of_body(of_operands.begin() + static_cast<std::ptrdiff_t>(r.asked), of_operands.end());
    const Flags next = becomes(of_body);
    for (std::size_t k = 0; k < r.carries(); k++)
      if (next[k] && !of_operands[r.first_carry() + k]) grew = of_operands[r.first_carry() + k] = true;
  }
  return of_operands;
}

// Carries and their tangents are carried together, since the number of iterations is unknown.
Arrays repeat_jvp(const JvpArgs& v) {
  const Repetition r = Repetition::of(v.node.attrs());
  Flags has;
  for (std::size_t k = 0; k < v.tangents.size(); k++)
    has.push_back(k >= r.asked && v.tangents[k].has_value() && is_inexact(type_of(v.in[k]).dtype));
  has = closed_over_carries(r, std::move(has), [&](const Flags& of_body) {
    Flags flows = depending(*r.body, of_body);
    for (std::size_t k = 0; k < flows.size(); k++)
      flows[k] = flows[k] && is_inexact(type_of(r.body->out[k]).dtype);
    return flows;
  });
  const Flags of_body(has.begin() + static_cast<std::ptrdiff_t>(r.asked), has.end());
  const Graph derived = v.graphs.derive(*r.body, of_body);
  std::vector<Array> tangent(of_body.size());  // the derived graph's tangent inputs
  for (std::size_t k = 0, next = of_body.size(); k < of_body.size(); k++)
    if (of_body[k]) tangent[k] = derived.in[next++];

  Repetition d;
  Graph condition = *r.condition, body;
  Arrays operands;
  const auto take = [&](const Array& input, const Array& operand) {
    body.in.push_back(input);
    operands.push_back(operand);
  };
  for (std::size_t k = 0; k < r.asked; k++) operands.push_back(v.in[k]);
  for (std::size_t k = 0; k < r.constants; k++) take(derived.in[k], v.in[r.asked + k]);
  for (std::size_t k = 0; k < r.constants; k++)
    if (of_body[k]) take(tangent[k], v.tangents[r.asked + k]);
  d.asked = r.asked;
  d.constants = body.in.size();
  for (std::size_t k = 0; k < r.carries(); k++) {
    take(derived.in[r.constants + k], v.in[r.first_carry() + k]);
    body.out.push_back(derived.out[k]);
  }
  std::vector<std::size_t> flows;
  for (std::size_t k = 0; k < r.carries(); k++) {
    if (!of_body[r.constants + k]) continue;
    const Array& first = v.tangents[r.first_carry() + k];
    const Type& type = type_of(v.in[r.first_carry() + k]);
    take(tangent[r.constants + k], first.has_value() ? first : zeros_of(type));
    body.out.push_back(derived.out[r.carries() + k]);
    condition.in.push_back(placeholder(type));
    flows.push_back(k);
  }
  Arrays result(r.carries());
  if (flows.empty()) return result;
  d.condition = shared(std::move(condition));
  d.body = shared(std::move(body));
  const Arrays given = record_repetition(std::move(d), operands);
  for (std::size_t j = 0; j < flows.size(); j++) result[flows[j]] = given[r.carries() + j];
  return result;
}

Arrays repeat_transpose(const TransposeArgs&) {
  throw Error(
      "while_loop: reverse-mode derivatives (grad, vjp, jacrev) cannot pass a while_loop: how many steps it "
      "takes, and so what it would store of them, is known only when it has run. Use fori_loop or scan with "
      "a fixed number of steps, stop_gradient, or forward mode (jvp, jacfwd).");
}

// Runs until no row continues; finished rows keep their values.
Graph masked_body(const Repetition& r, const Graph& condition, const Graph& body) {
  Graph g;
  Arrays asked, given;
  const auto take = [&](const Array& like) {
    g.in.push_back(placeholder(type_of(like)));
    return g.in.back();
  };
  for (std::size_t k = 0; k < r.asked; k++) asked.push_back(take(condition.in[k]));
  for (std::size_t k = 0; k < r.constants; k++) given.push_back(take(body.in[k]));
  const std::size_t first = g.in.size();
  for (std::size_t k = r.constants; k < body.in.size(); k++) {
    asked.push_back(take(body.in[k]));
    given.push_back(asked.back());
  }
  const Array goes_on = primitive::call(condition, asked)[0];
  const Arrays next = primitive::call(body, given);
  for (std::size_t k = 0; k < next.size(); k++)
    g.out.push_back(select_rows(goes_on, next[k], g.in[first + k]));
  return g;
}

Batched repeat_batch(const BatchArgs& b) {
  const RecordingWalk walk;
  Repetition r = Repetition::of(b.node.attrs());
  Graph condition, body;
  Flags out, asks;
  const auto part = [](const Flags& f, std::size_t first, std::size_t last) {
    return Flags(f.begin() + static_cast<std::ptrdiff_t>(first),
                 f.begin() + static_cast<std::ptrdiff_t>(last));
  };
  Flags of_operands = b.mapped;
  of_operands = closed_over_carries(r, std::move(of_operands), [&](const Flags& of_body) {
    Flags of_condition = part(b.mapped, 0, r.asked);
    const Flags carried = part(of_body, r.constants, of_body.size());
    of_condition.insert(of_condition.end(), carried.begin(), carried.end());
    out.clear();
    asks.clear();
    body = b.graphs.batch(*r.body, of_body, b.axis, out);
    condition = b.graphs.batch(*r.condition, of_condition, b.axis, asks);
    return asks[0] ? Flags(out.size(), true) : out;
  });
  const Flags carried = part(of_operands, r.first_carry(), of_operands.size());
  give_rows(body, out, carried, b.axis);
  Arrays operands;
  for (std::size_t k = 0; k < b.in.size(); k++)
    operands.push_back(of_operands[k] ? with_rows(b, k) : b.in[k]);
  if (asks[0]) {
    const Graph rows = condition;
    body = masked_body(r, rows, body);
    condition.out[0] = primitive::reduce(Reducer::any, condition.out[0], {0});
    r.constants += r.asked;
    const Arrays asked(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(r.asked));
    operands.insert(operands.begin() + static_cast<std::ptrdiff_t>(r.asked), asked.begin(), asked.end());
  }
  r.condition = shared(std::move(condition));
  r.body = shared(std::move(body));
  return {record_repetition(std::move(r), operands), carried};
}

}  // namespace

Arrays record_choice(Choice c, const Array& index, std::span<const Array> operands) {
  Flags needed(operands.size(), false);
  for (const auto& branch : c.branches) needed = either(needed, needed_inputs(*branch));
  Arrays in{index};
  for (std::size_t k = 0; k < operands.size(); k++)
    if (needed[k]) in.push_back(operands[k]);
  for (auto& branch : c.branches) {
    Graph g{{}, branch->out, {}};
    for (std::size_t k = 0; k < operands.size(); k++)
      if (needed[k]) g.in.push_back(branch->in[k]);
    branch = shared(std::move(g));
  }
  if (c.branches[0]->out.empty()) return {};
  return record_all(op_choose, in, std::make_shared<const Attrs>(c.attrs()), {});
}

Arrays record_repetition(Repetition r, std::span<const Array> operands) {
  Arrays in;
  const auto trim = [&](std::shared_ptr<const Graph>& graph, std::size_t constants, std::size_t first) {
    const Flags needed = needed_inputs(*graph);
    Graph g{{}, graph->out, {}};
    for (std::size_t k = 0; k < graph->in.size(); k++) {
      if (k < constants && !needed[k]) continue;
      g.in.push_back(graph->in[k]);
      if (k < constants) in.push_back(operands[first + k]);
    }
    graph = shared(std::move(g));
    return graph->in.size() - r.carries();
  };
  const std::size_t asked = trim(r.condition, r.asked, 0), constants = trim(r.body, r.constants, r.asked);
  in.insert(in.end(), operands.begin() + static_cast<std::ptrdiff_t>(r.first_carry()), operands.end());
  r.asked = asked;
  r.constants = constants;
  return record_all(op_repeat, in, std::make_shared<const Attrs>(r.attrs()), {});
}

// attrs: see Choice.
SHARDARRAY_OP op_choose{.name = "cond",
                        .form = Form::choose,
                        .rule = choose_rule,
                        .type = choose_type,
                        .jvp = choose_jvp,
                        .transpose = choose_transpose,
                        .batch = choose_batch};

// attrs: see Repetition.
SHARDARRAY_OP op_repeat{.name = "while_loop",
                        .form = Form::repeat,
                        .rule = repeat_rule,
                        .type = repeat_type,
                        .jvp = repeat_jvp,
                        .transpose = repeat_transpose,
                        .batch = repeat_batch};

}  // namespace shardarray

// scan: a graph that is called repeatedly. See graph/iteration.h.
#include "graph/iteration.h"

#include <algorithm>

#include "graph/trace_state.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

Arrays record_iteration(const Iteration& it, std::span<const Array> operands, const std::vector<bool>& used) {
  const Trimmed t = trimmed(it, used);
  Arrays results(it.body->out.size()), left;
  for (const std::size_t k : t.operands) left.push_back(operands[k]);
  if (!t.results.empty()) {
    const Arrays given = record_all(op_iterate, left, std::make_shared<const Attrs>(t.iteration.attrs()), {});
    for (std::size_t j = 0; j < t.results.size(); j++) results[t.results[j]] = given[j];
  }
  for (std::size_t k = 0; k < results.size(); k++)
    if (t.forwarded[k] >= 0) results[k] = operands[static_cast<std::size_t>(t.forwarded[k])];
  return results;
}

Arrays record_iteration(const Iteration& it, std::span<const Array> operands) {
  return record_iteration(it, operands, std::vector<bool>(it.body->out.size(), true));
}

static Types iterate_type(const Call& c) {
  const Iteration it = Iteration::of(*c.attrs);
  Types types;
  for (std::size_t k = 0; k < it.body->out.size(); k++) {
    const Type& t = type_of(it.body->out[k]);
    types.push_back(k < it.carries ? t : sequence_of(t, it.length));
  }
  return types;
}

// Carries keep their initial placement; everything else is placed inside the graph.
static Rule iterate_rule(const Call& c) {
  const Iteration it = Iteration::of(*c.attrs);
  Rule r;
  const auto is_carry = [&](std::size_t k) { return k >= it.constants && k < it.first_element(); };
  for (std::size_t k = 0; k < c.in.size(); k++)
    r.operands.push_back(own_factors(r, c.in[k], is_carry(k) ? Role::pass : Role::whole));
  const Types types = iterate_type(c);
  for (std::size_t k = 0; k < types.size(); k++)
    r.results.push_back(k < it.carries ? r.operands[it.constants + k]
                                       : own_factors(r, types[k], Role::whole));
  return r;
}

// The least fixed point of a property of carries that the body propagates.
template <class Becomes>
static void close_over_carries(const Iteration& it, std::vector<bool>& of_input, Becomes becomes) {
  for (bool grew = true; grew;) {
    grew = false;
    const std::vector<bool> of_result = becomes();
    for (std::size_t k = 0; k < it.carries; k++)
      if (of_result[k] && !of_input[it.constants + k]) grew = of_input[it.constants + k] = true;
  }
}

// The carries in `wanted` as each call receives them, as sequences: results of the node if it returns them, else recomputed.
static Arrays carry_sequences(const Node& n, std::span<const Array> in, std::span<const Array> out,
                              const std::vector<bool>& wanted) {
  Iteration it = Iteration::of(n.attrs());
  Graph body = *it.body;
  Arrays sequences(it.carries);
  std::vector<std::size_t> missing;
  for (std::size_t k = 0; k < it.carries; k++) {
    if (!wanted[k]) continue;
    const Array& carry = body.in[it.constants + k];
    const auto given = std::find_if(body.out.begin() + static_cast<std::ptrdiff_t>(it.carries),
                                    body.out.end(), [&](const Array& a) { return a.node() == carry.node(); });
    if (given != body.out.end()) sequences[k] = out[static_cast<std::size_t>(given - body.out.begin())];
    if (!sequences[k].has_value()) missing.push_back(k);
  }
  if (missing.empty()) return sequences;
  const std::size_t first = body.out.size();
  std::vector<bool> used(first, false);
  used.resize(first + missing.size(), true);
  for (std::size_t k : missing) body.out.push_back(body.in[it.constants + k]);
  it.body = std::make_shared<const Graph>(std::move(body));
  const Arrays given = record_iteration(it, in, used);
  for (std::size_t j = 0; j < missing.size(); j++) sequences[missing[j]] = given[first + j];
  return sequences;
}

// Builds an iteration input by input.
struct IterationDraft {
  Iteration it;
  Graph body;
  Arrays operands;
  std::vector<std::size_t> meaning;  // of the results, as the caller's indices

  void take(const Array& input, const Array& operand) {
    body.in.push_back(input);
    operands.push_back(operand);
  }
  void give(const Array& result, std::size_t means) {
    body.out.push_back(result);
    meaning.push_back(means);
  }
  void end_constants() { it.constants = body.in.size(); }
  void end_carries() { it.carries = body.in.size() - it.constants; }
  // Returns the results by meaning, out of n.
  Arrays record(std::size_t n) {
    it.body = std::make_shared<const Graph>(std::move(body));
    const Arrays given = record_iteration(it, operands);
    Arrays result(n);
    for (std::size_t j = 0; j < given.size(); j++) result[meaning[j]] = given[j];
    return result;
  }
};

// The next elements of `list`, one per flag that is set.
static Arrays next_where(const std::vector<bool>& flags, std::span<const Array>& list) {
  Arrays r(flags.size());
  for (std::size_t k = 0; k < flags.size(); k++) {
    if (!flags[k]) continue;
    r[k] = list.front();
    list = list.subspan(1);
  }
  return r;
}

// The derivative of one call. `has`: the operands with tangents; extended by carries that get one. `flows`: the results with tangents.
static Graph derived_call(const JvpArgs& v, const Iteration& it, std::vector<bool>& has,
                          std::vector<bool>& flows) {
  const Graph& body = *it.body;
  close_over_carries(it, has, [&] {
    flows = depending(body, has);
    for (std::size_t k = 0; k < flows.size(); k++)
      flows[k] = flows[k] && is_inexact(type_of(body.out[k]).dtype);
    return flows;
  });
  Graph derived;
  for (bool all_flow = false; !all_flow;) {  // where a derivative is zero, fewer results depend on tangents
    derived = v.graphs.derive(body, has);
    std::vector<bool> tangents(derived.in.size(), true);
    std::fill_n(tangents.begin(), body.in.size(), false);
    const std::vector<bool> reached = depending(derived, tangents);
    flows.assign(reached.begin() + std::ssize(body.out), reached.end());
    all_flow = true;
    for (std::size_t k = 0; k < it.carries; k++) {
      const std::size_t operand = it.constants + k;
      if (has[operand] && !flows[k] && !v.tangents[operand].has_value()) has[operand] = all_flow = false;
    }
  }
  for (std::size_t k = 0; k < it.carries; k++) flows[k] = has[it.constants + k];
  return derived;
}

// Tangents are carried through an iteration of their own, linear in them. It receives the carries of every call as sequences and recomputes
// from them what the derivative needs: memory is needed for carries only, as if every call was a checkpoint.
static Arrays iterate_jvp(const JvpArgs& v) {
  const Iteration it = Iteration::of(v.node.attrs());
  const Graph& body = *it.body;
  std::vector<bool> has, flows;
  for (const Array& t : v.tangents) has.push_back(t.has_value());
  const Graph derived = derived_call(v, it, has, flows);
  std::span<const Array> tangents = std::span(derived.in).subspan(body.in.size());
  const Arrays tangent = next_where(has, tangents);
  const Arrays carries = carry_sequences(v.node, v.in, v.out, std::vector<bool>(it.carries, true));

  IterationDraft d{it, {}, {}, {}};
  for (std::size_t k = 0; k < it.constants; k++) d.take(derived.in[k], v.in[k]);
  for (std::size_t k = 0; k < it.constants; k++)
    if (has[k]) d.take(tangent[k], v.tangents[k]);
  d.end_constants();
  for (std::size_t k = it.constants; k < it.first_element(); k++)
    if (has[k]) d.take(tangent[k], v.tangents[k].has_value() ? v.tangents[k] : zeros_of(type_of(body.in[k])));
  d.end_carries();
  for (std::size_t k = 0; k < it.carries; k++) d.take(derived.in[it.constants + k], carries[k]);
  for (std::size_t k = it.first_element(); k < body.in.size(); k++) d.take(derived.in[k], v.in[k]);
  for (std::size_t k = it.first_element(); k < body.in.size(); k++)
    if (has[k]) d.take(tangent[k], v.tangents[k]);
  for (std::size_t k = 0; k < flows.size(); k++)
    if (flows[k]) d.give(derived.out[body.out.size() + k], k);
  return d.record(flows.size());
}

// Runs the calls backwards: cotangents of carries are carried, those of constants accumulated.
static Arrays iterate_transpose(const TransposeArgs& t) {
  const Iteration it = Iteration::of(t.node.attrs());
  const Graph& body = *it.body;
  std::vector<bool> linear = t.linear, flows;
  close_over_carries(it, linear, [&] { return flows = depending(body, linear); });
  for (std::size_t k = 0; k < it.carries; k++) flows[k] = linear[it.constants + k];
  for (std::size_t k = it.carries; k < flows.size(); k++)  // no sequence of zeros for unused results
    flows[k] = flows[k] && t.cotangents[k].has_value();
  std::vector<bool> fixed;  // non-linear inputs
  for (std::size_t k = 0; k < linear.size(); k++) fixed.push_back(!linear[k]);
  const auto first_carry = fixed.begin() + static_cast<std::ptrdiff_t>(it.constants);
  const Arrays carries =
      carry_sequences(t.node, t.in, Arrays(t.node.out().size()),
                      {first_carry, first_carry + static_cast<std::ptrdiff_t>(it.carries)});
  Graph part{body.in, {}, {}};
  for (std::size_t k = 0; k < flows.size(); k++)
    if (flows[k]) part.out.push_back(body.out[k]);
  const Graph back = t.graphs.transpose(part, linear);
  std::span<const Array> come = back.in, go = back.out;
  const Arrays input = next_where(fixed, come), cotangent = next_where(flows, come),
               gone = next_where(linear, go);
  const auto given = [&](std::size_t k) {
    return t.cotangents[k].has_value() ? t.cotangents[k] : zeros_of(t.node.type(k));
  };

  const RecordingWalk walk;
  IterationDraft d{it, {}, {}, {}};
  d.it.reverse = !it.reverse;
  for (std::size_t k = 0; k < it.constants; k++)
    if (fixed[k]) d.take(input[k], t.in[k]);
  d.end_constants();
  for (std::size_t k = 0; k < it.carries; k++)
    if (flows[k]) {
      d.take(cotangent[k], given(k));
      d.give(gone[it.constants + k], it.constants + k);
    }
  for (std::size_t k = 0; k < it.constants; k++)
    if (linear[k]) {
      const Type& type = type_of(body.in[k]);
      d.take(placeholder(type), zeros_of(type));
      d.give(primitive::add(d.body.in.back(), gone[k]), k);
    }
  d.end_carries();
  for (std::size_t k = 0; k < it.carries; k++)
    if (fixed[it.constants + k]) d.take(input[it.constants + k], carries[k]);
  for (std::size_t k = it.first_element(); k < body.in.size(); k++)
    if (fixed[k]) d.take(input[k], t.in[k]);
  for (std::size_t k = it.carries; k < flows.size(); k++)
    if (flows[k]) d.take(cotangent[k], given(k));
  for (std::size_t k = it.first_element(); k < body.in.size(); k++)
    if (linear[k]) d.give(gone[k], k);
  return d.record(t.in.size());
}

// Swaps the rows with the dimension along which elements are stacked.
static Array swapped_front(const Array& x) {
  Shape perm = dims_of_rank(x.shape().size());
  std::swap(perm[0], perm[1]);
  return primitive::transpose(x, perm);
}

// Every call has rows; elements have theirs after the stacking dimension.
static Batched iterate_batch(const BatchArgs& b) {
  Iteration it = Iteration::of(b.node.attrs());
  std::vector<bool> mapped = b.mapped, out_mapped;
  Graph body;
  close_over_carries(it, mapped, [&] {
    out_mapped.clear();
    body = b.graphs.batch(*it.body, mapped, b.axis, out_mapped);
    return out_mapped;
  });
  const RecordingWalk walk;
  for (std::size_t k = 0; k < it.carries; k++)
    if (mapped[it.constants + k] && !out_mapped[k]) {
      body.out[k] = place_rows(add_leading(body.out[k], b.axis->size), b.axis);
      out_mapped[k] = true;
    }
  it.body = std::make_shared<const Graph>(std::move(body));
  Arrays operands;
  for (std::size_t k = 0; k < b.in.size(); k++) {
    const Array x = mapped[k] ? with_rows(b, k) : b.in[k];
    operands.push_back(mapped[k] && k >= it.first_element() ? swapped_front(x) : x);
  }
  Batched r{record_iteration(it, operands), out_mapped};
  for (std::size_t k = it.carries; k < r.out.size(); k++)
    if (out_mapped[k]) r.out[k] = swapped_front(r.out[k]);
  return r;
}

// attrs: see Iteration.
SHARDARRAY_OP op_iterate{.name = "scan",
                         .form = Form::iterate,
                         .rule = iterate_rule,
                         .type = iterate_type,
                         .jvp = iterate_jvp,
                         .transpose = iterate_transpose,
                         .batch = iterate_batch};

}  // namespace shardarray

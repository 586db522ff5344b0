// Sharding propagation over factors: every value gets a preference. Monotone (axes are only appended), so it terminates; in a fixed order
// (op priority, then topological index). Method: Shardy's basic propagation with op priorities.
#include <algorithm>
#include <deque>

#include "base/at.h"
#include "compile/assignment.h"
#include "compile/making.h"
#include "compile/passes.h"
#include "ops/record.h"

namespace shardarray {

namespace {

class Propagator {
 public:
  Propagator(const FlatGraph& g, const std::vector<Rule>& rules, const SubAxes& sub_axes)
      : g_(g), rules_(rules), makings_(makings(g, rules)), sub_axes_(sub_axes) {
    for (const Type& t : g.types) preferences_.dims.emplace_back(t.shape.size());
    preferences_.unreduced.resize(g.types.size());
    preferences_.closed.assign(g.types.size(), false);
    preferences_.from_closed.assign(g.types.size(), false);
    fixed_.resize(g.types.size());
    users_.resize(g.types.size());
    for (std::size_t i = 0; i < g.nodes.size(); i++)
      for (int v : g.nodes[i].in) at(users_, v).push_back(static_cast<int>(i));
  }

  // Fixes only the dimensions that the constraint names; the others are open.
  void close_some(const FlatNode& n, const Layout* l) {
    if (!l || !sub_axes_.can_express(*l)) return;
    std::vector<bool>& fixed = at(fixed_, n.first_out);
    fixed.assign(n.out_types[0].shape.size(), true);
    for (std::int64_t d : n.attrs->hi) fixed[fixed.size() - static_cast<std::size_t>(-d)] = false;
    if (!at(preferences_.closed, n.first_out))
      at(preferences_.dims, n.first_out) = to_sub_axes(sub_axes_, *l);
    SubAxisDims& operand = at(preferences_.dims, n.in[0]);
    const bool untouched =
        std::all_of(operand.begin(), operand.end(), [](const auto& d) { return d.empty(); });
    if (untouched && !at(preferences_.closed, n.in[0])) operand = at(preferences_.dims, n.first_out);
  }

  void close(int value, const Layout* l, bool backward) {
    if (!l || !sub_axes_.can_express(*l)) return;
    if (at(preferences_.closed, value)) return;
    at(preferences_.dims, value) = to_sub_axes(sub_axes_, *l);
    for (SubAxis a : l->unreduced()) sub_axes_.append(a, at(preferences_.unreduced, value));
    at(preferences_.closed, value) = true;
    if (backward) at(preferences_.from_closed, value) = true;
  }

  Preferences run() {
    // op priority: pass-through ops first, sums and broadcasts last
    for (int level = 0; level < 3; level++) {
      std::vector<bool> queued(g_.nodes.size(), true);
      std::deque<int> queue;
      for (std::size_t i = 0; i < g_.nodes.size(); i++) queue.push_back(static_cast<int>(i));
      while (!queue.empty()) {
        const int i = queue.front();
        queue.pop_front();
        at(queued, i) = false;
        for (int v : visit(i, level))
          for (int n : neighbours(v))
            if (!at(queued, n)) {
              at(queued, n) = true;
              queue.push_back(n);
            }
      }
    }
    lead_back();
    return std::move(preferences_);
  }

 private:
  // Backwards through elementwise ops, views and transposes: an operand prefers the given layout into which its result flows, even if that
  // is replicated.
  void lead_back() {
    for (int i = static_cast<int>(g_.nodes.size()) - 1; i >= 0; i--) {
      const FlatNode& n = at(g_.nodes, i);
      if (!is_elementwise(n.op->form) && n.op->form != Form::view && n.op->trait != Trait::transpose)
        continue;
      for (std::size_t k = 0; k < n.out_types.size(); k++)
        if (at(preferences_.from_closed, n.first_out + static_cast<int>(k)))
          for (int v : n.in)
            if (!at(preferences_.closed, v)) at(preferences_.from_closed, v) = true;
    }
  }

  std::vector<int> neighbours(int value) const {
    std::vector<int> n = at(users_, value);
    n.push_back(at(g_.producer, value));
    return n;
  }

  // Extends the open values around node i; returns those that grew.
  std::vector<int> visit(int i, int level) {
    const FlatNode& n = at(g_.nodes, i);
    const Rule& rule = at(rules_, i);
    std::vector<int> grown;
    const bool unbound = at(makings_, i) == Making::anywhere && n.op->trait != Trait::like;
    if (n.op->form == Form::leaf || unbound || (n.op->form == Form::constraint && n.attrs->hi.empty()))
      return grown;
    if (level == 0 && !is_elementwise(n.op->form) && n.op->form != Form::map && n.op->form != Form::view)
      return grown;
    const bool broadcasts_forward = level == 2;
    std::vector<Term> terms;
    for (std::size_t k = 0; k < n.in.size(); k++) terms.push_back({n.in[k], &rule.operands[k], false});
    for (std::size_t k = 0; k < rule.results.size(); k++)
      terms.push_back({n.first_out + static_cast<int>(k), &rule.results[k], true});
    std::vector<Assignment> projected;
    projected.reserve(terms.size());
    for (const Term& t : terms)
      projected.push_back(project(at(preferences_.dims, t.value), *t.dims, rule, sub_axes_));
    Assignment merged(rule.factors.size());
    for (std::size_t f = 0; f < rule.factors.size(); f++) {
      if (rule.factors[f].role == Role::whole || (level < 2 && rule.factors[f].role != Role::pass)) continue;
      merged[f] = longest_common(projected, f);
    }
    drop_clashes(merged);
    for (std::size_t t = 0; t < terms.size(); t++) {
      if (at(preferences_.closed, terms[t].value)) continue;
      if (terms[t].result && !broadcasts_forward && is_broadcast(n)) continue;
      if (extend(terms[t], merged, rule)) { grown.push_back(terms[t].value); }
    }
    return grown;
  }

  struct Term {
    int value;
    const std::vector<DimFactors>* dims;
    bool result;
  };

  static bool is_broadcast(const FlatNode& n) {
    return n.op->form == Form::map && num_elements(n.out_types[0].shape) > num_elements(n.in_types[0].shape);
  }

  static SubAxisList longest_common(const std::vector<Assignment>& projected, std::size_t f) {
    SubAxisList best;
    for (const auto& p : projected)
      if (p[f].size() > best.size()) best = p[f];
    for (const auto& p : projected) {  // "a" with "a,b" extends, "a,b" with "a,c" stops at "a"
      std::size_t same = 0;
      while (same < p[f].size() && same < best.size() && p[f][same] == best[same]) same++;
      if (same < p[f].size() && same < best.size()) best.keep(same);
    }
    return best;
  }

  static void drop_clashes(Assignment& a) {
    for (std::size_t f = 0; f < a.size(); f++)
      for (std::size_t h = 0; h < a.size(); h++)
        if (h != f)
          for (std::size_t k = 0; k < a[f].size(); k++)
            if (const auto* in_h = std::find(a[h].begin(), a[h].end(), a[f][k]); in_h != a[h].end()) {
              // both factors want it: neither gets it, or any axis after it
              a[h].keep(static_cast<std::size_t>(in_h - a[h].begin()));
              a[f].keep(k);
              break;
            }
  }

  bool extend(const Term& t, const Assignment& merged, const Rule& rule) {
    SubAxisDims& dims = at(preferences_.dims, t.value);
    const Shape& shape = at(g_.types, t.value).shape;
    SubAxisDims next;
    if (!place(merged, *t.dims, rule, shape, sub_axes_, next)) return false;
    bool grew = false;
    for (std::size_t d = 0; d < dims.size(); d++) {
      const SubAxisList& want = next[d];
      if (want.size() <= dims[d].size() || !std::equal(dims[d].begin(), dims[d].end(), want.begin()))
        continue;
      const bool taken = std::any_of(want.begin() + dims[d].size(), want.end(), [&](int sub_axis) {
        return std::any_of(dims.begin(), dims.end(),
                           [&](const SubAxisList& o) { return o.contains(sub_axis); });
      });
      if (taken || shape[d] <= 1 || (!at(fixed_, t.value).empty() && at(fixed_, t.value)[d])) continue;
      dims[d] = want;
      grew = true;
    }
    return grew;
  }

  const FlatGraph& g_;
  const std::vector<Rule>& rules_;
  std::vector<Making> makings_;  // by node
  const SubAxes& sub_axes_;
  Preferences preferences_;
  std::vector<std::vector<int>> users_;
  std::vector<std::vector<bool>> fixed_;  // value -> dimensions that do not grow; empty: all may
};

}  // namespace

Propagation propagate(const FlatGraph& g, const CompileInput& in) {
  Propagation r;
  std::vector<const Layout*> given(in.inputs.begin(), in.inputs.end());
  for (const FlatNode& n : g.nodes) {
    if (n.op->form == Form::constraint) given.push_back(constraint_layout(n, in.order));
    r.rules.push_back(n.op->form == Form::leaf ? Rule{} : n.op->rule(n.call()));
  }
  given.insert(given.end(), in.outputs.begin(), in.outputs.end());
  r.sub_axes = SubAxes::of(in.order, given);
  Propagator p(g, r.rules, r.sub_axes);
  for (std::size_t k = 0; k < g.inputs.size(); k++) p.close(g.inputs[k], in.inputs[k], false);
  for (const FlatNode& n : g.nodes) {
    if (n.op->form != Form::constraint) continue;
    const Layout* l = constraint_layout(n, in.order);
    if (n.attrs->hi.empty()) {
      p.close(n.first_out, l, false);
      p.close(n.in[0], l, true);
    } else {
      p.close_some(n, l);
    }
  }
  for (std::size_t k = 0; k < g.outputs.size(); k++)
    if (k < in.outputs.size() && in.outputs[k]) p.close(g.outputs[k], in.outputs[k], true);
  r.preferences = p.run();
  r.preferences.outputs = in.outputs;
  r.preferences.outputs.resize(g.outputs.size());
  return r;
}

}  // namespace shardarray

#include "compile/shared_sums.h"

#include <algorithm>

#include "base/at.h"
#include "compile/shared_copies.h"
#include "runtime/half_floats.h"

namespace shardarray {
namespace {

class Summands {
 public:
  Summands(const FlatGraph& g, const std::vector<Rule>& rules, const NodeFacts& facts)
      : g_(g), rules_(rules), facts_(facts), may_be_(g.types.size()), is_shared_(g.types.size()) {
    for (int i = 0; i < std::ssize(g.nodes); i++) look_at(i);
  }
  // By value: whether it is added to others, as a partial sum.
  const std::vector<bool>& shared() const { return is_shared_; }
  // Nodes that make such sums from other values.
  const std::vector<int>& makers() const { return makers_; }

 private:
  // Called in the order of the nodes: operands are known.
  void look_at(int i) {
    const FlatNode& n = at(g_.nodes, i);
    if (at(facts_.makings, i) != Making::once || n.out_types.size() != 1 || n.modes->reproducible ||
        is_half(n.out_types[0].dtype))
      return;
    if (makes_sums(at(rules_, i))) {
      at(may_be_, n.first_out) = true;
      return;
    }
    if (n.op->form == Form::leaf) return;
    const std::vector<Linear>& linear = at(facts_.linear, i);
    int joint = 0, each = 0, others = 0;
    for (std::size_t k = 0; k < n.in.size(); k++) {
      const bool passes = linear[k] != Linear::no && at(may_be_, n.in[k]) && facts_.uses.has_one(n.in[k]);
      if (passes) (linear[k] == Linear::joint ? joint : each)++;
      else others += linear[k] == Linear::joint;
    }
    const bool passes = each == 0 ? joint > 0 && others == 0 : each == 1 && joint == 0 && others == 0;
    if (!passes) return;
    at(may_be_, n.first_out) = true;
    if (joint > 1)
      for (const int v : n.in) share(v);
  }
  static bool makes_sums(const Rule& rule) {
    return std::ranges::any_of(rule.factors, [](const Factor& f) {
      return f.role == Role::reduce && f.reducer == Reducer::sum && f.size > 1;
    });
  }
  // Marks v and what it is made of.
  void share(int v) {
    if (!at(may_be_, v) || at(is_shared_, v)) return;
    at(is_shared_, v) = true;
    const int maker = at(g_.producer, v);
    if (makes_sums(at(rules_, maker))) {
      makers_.push_back(maker);
      return;
    }
    for (const int u : at(g_.nodes, maker).in)
      if (at(may_be_, u) && facts_.uses.has_one(u)) share(u);
  }

  const FlatGraph& g_;
  const std::vector<Rule>& rules_;
  const NodeFacts& facts_;
  std::vector<bool> may_be_, is_shared_;
  std::vector<int> makers_;
};

}  // namespace

std::vector<Preferences> shared_sums(const Preferences& by, const FlatGraph& g,
                                     const Propagation& propagation, const NodeFacts& facts) {
  const Summands summands(g, propagation.rules, facts);
  std::vector<Preferences> found;
  if (summands.makers().empty()) return found;
  std::vector<SubAxisDims> made_of;
  for (const int maker : summands.makers())
    for (const int v : at(g.nodes, maker).in) made_of.push_back(at(by.dims, v));
  for (const SubAxisList& kind : sharing_axes(propagation.sub_axes, made_of)) {
    Preferences& p = found.emplace_back(by);
    for (int v = 0; v < std::ssize(p.dims); v++) {
      if (!at(summands.shared(), v) || at(p.closed, v)) continue;
      at(p.dims, v) = without(at(p.dims, v), kind);
      at(p.unreduced, v) = kind;
      at(p.from_closed, v) = true;
    }
  }
  return found;
}

}  // namespace shardarray

#include "compile/strategy.h"

#include <algorithm>
#include <limits>

#include "compile/dealing.h"
#include "compile/node_price.h"

namespace shardarray {

static constexpr double kNowhere = std::numeric_limits<double>::infinity();

Assignment StrategySearch::merged(const NodeState& s) const {
  Assignment a(s.rule->factors.size());
  SubAxisList used = s.pending;
  // Extends what is there, up to a sub-axis that another factor holds.
  auto join = [&](const TermState& t) {
    const Assignment p = project(to_sub_axes(sub_axes_, *t.layout), *t.factors, *s.rule, sub_axes_);
    for (std::size_t f = 0; f < a.size(); f++) {
      if (s.rule->factors[f].role == Role::whole || p[f].size() < a[f].size() ||
          !std::equal(a[f].begin(), a[f].end(), p[f].begin()))
        continue;
      for (std::size_t k = a[f].size(); k < p[f].size() && !used.contains(p[f][k]); k++) {
        a[f].push_back(p[f][k]);
        used.push_back(p[f][k]);
      }
    }
  };
  std::vector<const TermState*> terms;
  for (const TermState& t : s.operands)
    if (!t.free) terms.push_back(&t);
  std::stable_sort(terms.begin(), terms.end(), [](auto* x, auto* y) {
    return num_elements(x->source.type.shape) > num_elements(y->source.type.shape);
  });
  for (const TermState* t : terms) join(*t);
  for (const TermState& t : s.results) join(t);
  return a;
}

const Strategy& StrategySearch::cheapest(const NodeState& s) {
  auto [it, fresh] = known_.try_emplace(key_of(s));
  if (fresh) it->second = {s, search(s)};
  return it->second.strategy;
}

bool StrategySearch::decides_as(const StrategySearch& other) {
  return std::ranges::all_of(other.known_, [&](const auto& known) {
    const auto& [state, strategy] = known.second;
    const Strategy& mine = cheapest(state);
    return mine.assignment == strategy.assignment && mine.in == strategy.in && mine.out == strategy.out;
  });
}

Strategy StrategySearch::search(const NodeState& s) {
  NodePrice price(s, layouts_, reshards_);
  if (other_ && !Dealing(price, s, sub_axes_, freedom_).is_freer()) return other_->cheapest(s);
  Strategy best = search(s, price);
  return best.cost == kNowhere ? price.uncut() : best;
}

std::optional<Strategy> StrategySearch::next(const NodeState& s,
                                             const std::vector<std::vector<const Layout*>>& but) {
  NodePrice price(s, layouts_, reshards_);
  price.leave_out(but);
  Strategy best = search(s, price);
  if (best.cost == kNowhere) return {};
  return best;
}

const Strategy& StrategySearch::behind(const NodeState& s, const Strategy& d, std::size_t places) {
  // d and those behind it; the last one is repeated if there is no other
  std::deque<Strategy>& all = behind_[key_of(s)];
  if (all.empty()) all.push_back(d);
  const auto is_over = [&] { return all.size() > 1 && all.back().in == all[all.size() - 2].in; };
  while (all.size() <= places && !is_over()) {
    std::vector<std::vector<const Layout*>> nearer;
    nearer.reserve(all.size());
    for (const Strategy& x : all) nearer.push_back(x.in);
    all.push_back(next(s, nearer).value_or(all.back()));
  }
  return all[std::min(places, all.size() - 1)];
}

Strategy StrategySearch::search(const NodeState& s, NodePrice& price) const {
  Strategy best;
  best.cost = kNowhere;
  const Assignment there = merged(s);
  price.consider(there, price.work(there), kNowhere, best);
  const bool at_preference = best.cost != kNowhere && best.cost <= price.work(best.assignment);
  if (!at_preference && (s.node->modes->policy != Policy::follow || best.cost == kNowhere)) {
    Dealing dealing(price, s, sub_axes_, freedom_);
    dealing.deal(dealing.present(), kNowhere, best);
    // Idle axes may save work, or memory that a device does not have. Saved work is not worth bytes beyond those that move anyway if axes
    // stay.
    if (const SubAxisList all = dealing.present_and_idle(); all.size() > dealing.present().size()) {
      const double most = other_ ? std::max(best.moved, other_->cheapest(s).moved) : best.moved;
      dealing.deal(all, best.peak > 0 ? kNowhere : most, best);
    }
  }
  return best;
}

}  // namespace shardarray

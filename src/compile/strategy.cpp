#include "compile/strategy.h"

#include <algorithm>
#include <limits>

#include "base/ceil_div.h"
#include "base/sizes.h"
#include "compile/halo.h"
#include "compile/reshard.h"
#include "compile/scan.h"
#include "layout/tiles.h"

namespace shardarray {

namespace {

constexpr double kNowhere = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostCandidates = 4096;
constexpr double kRefused = 1e6;

/// Whether operand k comes at no cost: made in its place, or there already for an operand before it.
bool is_there(const NodeState& s, const Strategy& d, std::size_t k) {
  bool there = s.operands[k].free;
  for (std::size_t j = 0; j < k; j++) there |= s.node->in[j] == s.node->in[k] && d.in[j] == d.in[k];
  return there;
}

MoveCost smaller(const MoveCost& a, const MoveCost& b) { return b.all() < a.all() ? b : a; }

/// What a device holds for the node: operands where it needs them, and results.
std::int64_t bytes_at_once(const NodeState& s, const Strategy& d) {
  std::int64_t bytes = 0;
  const auto add = [&](const Layout& l, const Type& t) {
    bytes = add_sizes(bytes, tile_bytes(l, t.shape, static_cast<std::int64_t>(itemsize(t.dtype))));
  };
  for (std::size_t k = 0; k < s.operands.size(); k++)
    if (!is_there(s, d, k)) add(*d.in[k], s.operands[k].type);
  for (std::size_t k = 0; k < s.results.size(); k++) add(*d.out[k], s.results[k].type);
  return bytes;
}

double elements_of_factors(const NodeState& s, const Assignment& a, const SubAxes& sub_axes) {
  double n = 1;
  for (std::size_t f = 0; f < a.size(); f++) {
    std::int64_t tiles = 1;
    for (int sub_axis : a[f]) tiles *= sub_axes.size(sub_axis);
    const std::int64_t size = s.rule->factors[f].size;
    n *= static_cast<double>(ceil_div(size, tiles));
  }
  return n;
}

}  // namespace

MoveCost StrategySearch::transfer(const Layout* from, const Layout* to, const Type& t) {
  if (from == to) return {};
  auto key =
      std::tuple(from, to, std::vector<std::int64_t>(t.shape.begin(), t.shape.end()), itemsize(t.dtype));
  auto [it, fresh] = transfers_.try_emplace(std::move(key));
  if (fresh)
    it->second = reshard(from, to, t.shape, static_cast<std::int64_t>(itemsize(t.dtype)), model_).cost;
  return it->second;
}

bool StrategySearch::complete(const NodeState& s, Strategy& d) const {
  if (!d.pending.empty() && cut_factor(*s.rule, d.assignment, Role::scan))
    return false;  // its carries are not in parts
  std::vector<int> reduced = d.pending;
  Reducer reducer = d.pending.empty() ? Reducer::none : Reducer::sum;
  for (std::size_t f = 0; f < d.assignment.size(); f++)
    if (s.rule->factors[f].role == Role::reduce && !d.assignment[f].empty()) {
      if (reducer != Reducer::none && reducer != s.rule->factors[f].reducer) return false;
      reducer = s.rule->factors[f].reducer;
      reduced.insert(reduced.end(), d.assignment[f].begin(), d.assignment[f].end());
    }
  d.in.clear();
  d.out.clear();
  for (const TermState& t : s.operands) {
    auto dims = place(d.assignment, *t.factors, *s.rule, t.type.shape, sub_axes_);
    if (!dims) return false;
    const bool keeps = !d.pending.empty() && t.layout && !t.layout->unreduced().empty() && t.can_carry;
    d.in.push_back(to_layout(sub_axes_, *dims, keeps ? d.pending : std::vector<int>{}, Reducer::sum));
  }
  for (const TermState& t : s.results) {
    auto dims = place(d.assignment, *t.factors, *s.rule, t.type.shape, sub_axes_);
    if (!dims) return false;
    d.out.push_back(to_layout(sub_axes_, *dims, reduced, reducer));
  }
  return true;
}

MoveCost StrategySearch::fetch(const TermState& t, const Layout* to) {
  MoveCost least = transfer(t.layout, to, t.type);
  for (const Layout* l : t.copies)
    if (l == to || to->unreduced().empty()) least = smaller(least, transfer(l, to, t.type));
  return least;
}

void StrategySearch::add_cost(const NodeState& s, Strategy& d) {
  MoveCost moves;
  for (std::size_t k = 0; k < s.operands.size(); k++) {
    const TermState& t = s.operands[k];
    if (!is_there(s, d, k)) moves += fetch(t, d.in[k]) * (t.should_stay ? kRefused : 1);
  }
  for (std::size_t k = 0; k < s.results.size(); k++) {
    const TermState& t = s.results[k];
    MoveCost to_preference = transfer(d.out[k], t.layout, t.type) * t.weight;
    if (!d.out[k]->unreduced().empty() && d.pending.empty()) {
      // the partial result will be combined somewhere: at its place, or on the way to the preference
      const Layout* here = Layout::of(d.out[k]->order(), d.out[k]->dims());
      const MoveCost at_place =
          transfer(d.out[k], here, t.type) + transfer(here, t.layout, t.type) * t.weight;
      to_preference = smaller(at_place, transfer(d.out[k], t.layout, t.type));
    }
    moves += to_preference;
  }
  const double each = s.node->op->form == Form::gemm ? 2 : 1;
  d.moved = moves.moved;
  d.peak = moves.peak + (model_.has_peaks() ? model_.peak(bytes_at_once(s, d)) : 0);
  d.cost = d.moved + d.peak + model_.compute(each * elements_of_factors(s, d.assignment, sub_axes_));
}

void StrategySearch::add_neighbours(const NodeState& s, Strategy& d) const {
  std::int64_t bytes = 0;
  if (s.node->op->boxes && cut_factor(*s.rule, d.assignment, Role::halo))
    bytes = halo_transfer(*s.node, d.in, d.out[0]).bytes;
  else if (s.node->op->windows)
    for (const Window& w : windows_of(*s.node, d.in, d.out)) bytes += w.transfer.bytes;
  else if (const auto f = cut_factor(*s.rule, d.assignment, Role::scan))
    bytes = carry_transfer(*s.node, *d.in[0], scanned_dim(*s.rule, *f)).bytes;
  d.moved += model_.halo(bytes);
  d.cost += model_.halo(bytes);
}

Assignment StrategySearch::merged(const NodeState& s) const {
  Assignment a(s.rule->factors.size());
  std::vector<int> used = s.pending;
  // What is there is extended, up to an sub_axis that another factor holds.
  auto join = [&](const TermState& t) {
    const Assignment p = project(to_sub_axes(sub_axes_, *t.layout), *t.factors, *s.rule, sub_axes_);
    for (std::size_t f = 0; f < a.size(); f++) {
      if (s.rule->factors[f].role == Role::whole || p[f].size() < a[f].size() ||
          !std::equal(a[f].begin(), a[f].end(), p[f].begin()))
        continue;
      for (std::size_t k = a[f].size();
           k < p[f].size() && std::find(used.begin(), used.end(), p[f][k]) == used.end(); k++) {
        a[f].push_back(p[f][k]);
        used.push_back(p[f][k]);
      }
    }
  };
  std::vector<const TermState*> terms;
  for (const TermState& t : s.operands)
    if (!t.free) terms.push_back(&t);
  std::stable_sort(terms.begin(), terms.end(), [](auto* x, auto* y) {
    return num_elements(x->type.shape) > num_elements(y->type.shape);
  });
  for (const TermState* t : terms) join(*t);
  for (const TermState& t : s.results) join(t);
  return a;
}

std::vector<int> StrategySearch::present_sub_axes(const NodeState& s) const {
  std::vector<int> present;
  auto add = [&](const TermState& t) {
    for (const auto& dim : to_sub_axes(sub_axes_, *t.layout))
      for (int sub_axis : dim)
        if (std::find(present.begin(), present.end(), sub_axis) == present.end() &&
            std::find(s.pending.begin(), s.pending.end(), sub_axis) == s.pending.end())
          present.push_back(sub_axis);
  };
  for (const TermState& t : s.operands)
    if (!t.free) add(t);
  for (const TermState& t : s.results) add(t);
  return present;
}

// Of a product: axes that no tensor uses could take a part of the work instead of repeating it.
std::vector<int> StrategySearch::idle_sub_axes(const NodeState& s, const std::vector<int>& present) const {
  std::vector<int> idle;
  if (present.empty() || s.node->op->form != Form::gemm) return idle;
  for (int k = 0; k < static_cast<int>(sub_axes_.axes.size()); k++)
    if (std::find(present.begin(), present.end(), k) == present.end() &&
        std::find(s.pending.begin(), s.pending.end(), k) == s.pending.end())
      idle.push_back(k);
  return idle;
}

// SubAxes that a tensor already has on the factor come first, in its order; moved ones after them.
void StrategySearch::order_sub_axes(const NodeState& s, Assignment& a) const {
  std::vector<Assignment> projections;
  for (const TermState& t : s.results)
    projections.push_back(project(to_sub_axes(sub_axes_, *t.layout), *t.factors, *s.rule, sub_axes_));
  for (const TermState& t : s.operands)
    if (!t.free)
      projections.push_back(project(to_sub_axes(sub_axes_, *t.layout), *t.factors, *s.rule, sub_axes_));
  for (std::size_t f = 0; f < a.size(); f++) {
    if (a[f].size() < 2) continue;
    for (const Assignment& p : projections) {
      auto rank = [&](int sub_axis) { return std::find(p[f].begin(), p[f].end(), sub_axis) - p[f].begin(); };
      const bool knows = std::any_of(a[f].begin(), a[f].end(), [&](int sub_axis) {
        return rank(sub_axis) < static_cast<std::ptrdiff_t>(p[f].size());
      });
      if (!knows) continue;
      std::stable_sort(a[f].begin(), a[f].end(), [&](int x, int y) { return rank(x) < rank(y); });
      break;
    }
  }
}

void StrategySearch::consider(const NodeState& s, Assignment a, double most, Strategy& best) {
  Strategy d;
  d.assignment = std::move(a);
  d.pending = s.pending;
  if (!complete(s, d)) return;
  add_cost(s, d);
  const auto is_better = [&] { return d.cost < best.cost - 1e-9 && d.moved <= most; };
  if (!is_better()) return;
  add_neighbours(s, d);
  if (is_better()) {
    d.ways = best.ways;
    best = std::move(d);
  }
}

std::optional<std::size_t> StrategySearch::agreed_factor(const NodeState& s, int sub_axis) const {
  std::optional<std::size_t> agreed;
  bool clash = false;
  auto look = [&](const TermState& t) {
    const Assignment p = project(to_sub_axes(sub_axes_, *t.layout), *t.factors, *s.rule, sub_axes_);
    bool found = false;
    for (std::size_t f = 0; f < p.size(); f++)
      if (std::find(p[f].begin(), p[f].end(), sub_axis) != p[f].end()) {
        clash |= (agreed && *agreed != f) || s.rule->factors[f].role == Role::whole;
        agreed = f;
        found = true;
      }
    for (const auto& dim : to_sub_axes(sub_axes_, *t.layout))
      if (!found && std::find(dim.begin(), dim.end(), sub_axis) != dim.end())
        clash = true;  // it stands where no factor can hold it
  };
  for (const TermState& t : s.operands)
    if (!t.free) look(t);
  for (const TermState& t : s.results) look(t);
  return clash ? std::nullopt : agreed;
}

void StrategySearch::enumerate(const NodeState& s, const std::vector<int>& sub_axes, double most,
                               Strategy& best) {
  std::vector<std::size_t> factors;
  for (std::size_t f = 0; f < s.rule->factors.size(); f++)
    if (s.rule->factors[f].role != Role::whole && s.rule->factors[f].size > 1) factors.push_back(f);
  // An sub_axis on which all tensors agree stays at its factor or leaves; it does not wander where devices have the memory.
  std::vector<std::vector<std::size_t>> choices;
  double count = 1;
  for (int sub_axis : sub_axes) {
    const std::optional<std::size_t> agreed =
        best.cost < kNowhere && best.peak == 0 ? agreed_factor(s, sub_axis) : std::nullopt;
    choices.push_back(agreed ? std::vector<std::size_t>{*agreed} : factors);
    count *= static_cast<double>(choices.back().size() + 1);
  }
  if (count > static_cast<double>(kMostCandidates)) {  // the merged one stands
    best.ways = std::max(best.ways, count);
    return;
  }
  std::vector<std::size_t> choice(sub_axes.size(), 0);
  for (;;) {
    Assignment a(s.rule->factors.size());
    for (std::size_t k = 0; k < sub_axes.size(); k++)
      if (choice[k] < choices[k].size()) a[choices[k][choice[k]]].push_back(sub_axes[k]);
    order_sub_axes(s, a);
    consider(s, std::move(a), most, best);
    std::size_t k = 0;
    while (k < choice.size() && ++choice[k] > choices[k].size()) choice[k++] = 0;
    if (k == choice.size()) return;
  }
}

Strategy StrategySearch::cheapest(const NodeState& s) {
  Strategy best;
  best.cost = kNowhere;
  consider(s, merged(s), kNowhere, best);
  const double floor = best.cost == kNowhere
                           ? kNowhere
                           : model_.compute((s.node->op->form == Form::gemm ? 2 : 1) *
                                            elements_of_factors(s, best.assignment, sub_axes_));
  bool at_preference = best.cost != kNowhere && best.cost <= floor;
  if (!at_preference && (s.node->modes->policy != Policy::follow || best.cost == kNowhere)) {
    std::vector<int> sub_axes = present_sub_axes(s);
    enumerate(s, sub_axes, kNowhere, best);
    const std::vector<int> idle = idle_sub_axes(s, sub_axes);
    sub_axes.insert(sub_axes.end(), idle.begin(), idle.end());
    // Idle axes may save work or memory that a device does not have; work is not worth bytes.
    if (!idle.empty()) enumerate(s, sub_axes, best.peak > 0 ? kNowhere : best.moved, best);
  }
  if (best.cost == kNowhere) {  // nothing fits: everything whole
    best.assignment.assign(s.rule->factors.size(), {});
    best.pending = s.pending;
    complete(s, best);
  }
  return best;
}

}  // namespace shardarray

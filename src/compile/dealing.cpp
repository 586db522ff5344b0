#include "compile/dealing.h"

#include <algorithm>
#include <limits>

namespace shardarray {

namespace {

constexpr double kMostAtOnce = 4096;

template <class C, class T> bool contains(const C& c, const T& value) {
  return std::find(c.begin(), c.end(), value) != c.end();
}

template <class Units> double ways_of(const Units& units) {
  double ways = 1;
  for (const auto& u : units) ways *= static_cast<double>(u.factors.size() + 1);
  return ways;
}

}  // namespace

Dealing::Dealing(NodePrice& price, const NodeState& s, const SubAxes& sub_axes, Freedom freedom)
    : price_(price), s_(s), sub_axes_(sub_axes), freedom_(freedom) {
  const auto term = [&](const TermState& t) {
    Term r{to_sub_axes(sub_axes, *t.layout), {}, {}};
    r.factors = project(r.dims, *t.factors, *s.rule, sub_axes);
    for (const std::vector<int>& held : r.factors) {
      std::vector<std::size_t>& places = r.places.emplace_back(sub_axes.axes.size(), not_there);
      for (std::size_t k = 0; k < held.size(); k++) places[static_cast<std::size_t>(held[k])] = k;
    }
    for (const auto& dim : r.dims)
      for (const int a : dim)
        if (!contains(present_, a) && !contains(s.pending, a)) present_.push_back(a);
    return r;
  };
  for (const TermState& t : s.operands)
    if (!t.free) operands_.push_back(term(t));
  for (const TermState& t : s.results) results_.push_back(term(t));
  for (std::size_t f = 0; f < s.rule->factors.size(); f++)
    if (s.rule->factors[f].role != Role::whole && s.rule->factors[f].size > 1) factors_.push_back(f);
}

std::vector<int> Dealing::present_and_idle() const {
  std::vector<int> all = present_;
  const Form form = s_.node->op->form;
  const bool is_placed =
      std::all_of(s_.results.begin(), s_.results.end(), [](const TermState& t) { return t.weight == 1.0; });
  // else a result would be cut finer for nothing
  const bool may_share =
      form == Form::gemm || (freedom_ == Freedom::sharing && is_placed && !s_.is_asked &&
                             !is_elementwise(form) && form != Form::map && form != Form::view);
  if (present_.empty() || !may_share) return all;
  for (int k = 0; k < static_cast<int>(sub_axes_.axes.size()); k++)
    if (!contains(present_, k) && !contains(s_.pending, k)) all.push_back(k);
  return all;
}

std::optional<std::size_t> Dealing::agreed_factor(int sub_axis) const {
  std::optional<std::size_t> agreed;
  int holders = 0;
  bool clash = false;
  for (const std::vector<Term>* terms : {&operands_, &results_})
    for (const Term& t : *terms) {
      bool found = false;
      for (std::size_t f = 0; f < t.factors.size(); f++)
        if (contains(t.factors[f], sub_axis)) {
          clash |= (agreed && *agreed != f) || s_.rule->factors[f].role == Role::whole;
          agreed = f;
          holders++;
          found = true;
        }
      for (const auto& dim : t.dims)
        clash |= !found && contains(dim, sub_axis);  // where no factor can hold it
    }
  if (agreed && freedom_ == Freedom::roaming && !s_.is_asked &&
      (holders < 2 || s_.rule->factors[*agreed].role == Role::reduce))
    return std::nullopt;
  return clash ? std::nullopt : agreed;
}

std::vector<Dealing::Unit> Dealing::single_units(const std::vector<int>& sub_axes,
                                                 const Strategy& best) const {
  // One on which all tensors agree stays at its factor or leaves; it does not wander where devices have the memory.
  const bool may_stay = best.cost < std::numeric_limits<double>::infinity() && best.peak == 0;
  std::vector<Unit> units;
  for (const int a : sub_axes) {
    const std::optional<std::size_t> agreed = may_stay ? agreed_factor(a) : std::nullopt;
    units.push_back({{a}, agreed ? std::vector<std::size_t>{*agreed} : factors_});
  }
  return units;
}

std::vector<Dealing::Unit> Dealing::side_by_side(const std::vector<Unit>& single) const {
  const auto follows = [&](int a, int b) {
    for (const std::vector<Term>* terms : {&operands_, &results_})
      for (const Term& t : *terms)
        for (const auto& dim : t.dims) {
          const auto first = std::find(dim.begin(), dim.end(), a),
                     second = std::find(dim.begin(), dim.end(), b);
          const bool is_next = first != dim.end() && second == first + 1;
          if ((first != dim.end() || second != dim.end()) && !is_next) return false;
        }
    return true;
  };
  std::vector<Unit> sorted = single;
  std::sort(sorted.begin(), sorted.end(),
            [](const Unit& a, const Unit& b) { return a.sub_axes < b.sub_axes; });
  std::vector<Unit> units;
  for (Unit& u : sorted)
    if (!units.empty() && units.back().factors == u.factors &&
        follows(units.back().sub_axes.back(), u.sub_axes[0]))
      units.back().sub_axes.push_back(u.sub_axes[0]);
    else units.push_back(std::move(u));
  return units;
}

// What a tensor already has on the factor comes first, in its order; what moved there after it.
void Dealing::order(Assignment& a, bool results_first) const {
  for (std::size_t f = 0; f < a.size(); f++) {
    if (a[f].size() < 2) continue;
    const auto sort_as = [&](const std::vector<std::size_t>& places) {
      const auto place = [&](int x) { return places[static_cast<std::size_t>(x)]; };
      if (std::ranges::all_of(a[f], [&](int x) { return place(x) == not_there; })) return false;
      for (auto x = a[f].begin(); x != a[f].end(); ++x)  // few: std::stable_sort would allocate
        std::rotate(std::ranges::upper_bound(a[f].begin(), x, place(*x), {}, place), x, x + 1);
      return true;
    };
    bool sorted = false;
    for (const std::vector<Term>* terms :
         {results_first ? &results_ : &operands_, results_first ? &operands_ : &results_})
      for (const Term& t : *terms) sorted = sorted || sort_as(t.places[f]);
  }
}

void Dealing::deal_units(const std::vector<const Unit*>& units, const Assignment& fixed, double most,
                         Strategy& best) {
  std::vector<std::size_t> choice(units.size(), 0);
  Assignment a, as_operands;  // their memory is used again
  for (;;) {
    a = fixed;
    for (std::size_t k = 0; k < units.size(); k++)
      if (choice[k] < units[k]->factors.size()) {
        std::vector<int>& to = a[units[k]->factors[choice[k]]];
        to.insert(to.end(), units[k]->sub_axes.begin(), units[k]->sub_axes.end());
      }
    const bool has_order = std::ranges::any_of(a, [](const std::vector<int>& f) { return f.size() > 1; });
    if (has_order) {
      as_operands = a;
      order(a, true);
      order(as_operands, false);
    }
    price_.consider(a, most, best);
    if (has_order && as_operands != a) price_.consider(as_operands, most, best);
    std::size_t k = 0;
    while (k < choice.size() && ++choice[k] > units[k]->factors.size()) choice[k++] = 0;
    if (k == choice.size()) return;
  }
}

void Dealing::deal_again(const std::vector<const Unit*>& units, double most, Strategy& best) {
  Assignment others = best.assignment;
  if (others.empty()) others.resize(s_.rule->factors.size());
  for (auto& factor : others)
    std::erase_if(factor, [&](int a) {
      return std::any_of(units.begin(), units.end(), [&](const Unit* u) { return contains(u->sub_axes, a); });
    });
  deal_units(units, others, most, best);
}

void Dealing::deal_pairs(const std::vector<Unit>& units, double most, Strategy& best) {
  for (;;) {
    const double before = best.cost;
    for (std::size_t k = 0; k < units.size(); k++)
      for (std::size_t j = k + 1; j < units.size(); j++) deal_again({&units[k], &units[j]}, most, best);
    if (!(best.cost < before)) return;
  }
}

void Dealing::deal_halves(const Unit& unit, double most, Strategy& best) {
  if (unit.sub_axes.size() < 2) return;
  const auto middle = unit.sub_axes.begin() + std::ssize(unit.sub_axes) / 2;
  const Unit left{{unit.sub_axes.begin(), middle}, unit.factors},
      right{{middle, unit.sub_axes.end()}, unit.factors};
  deal_again({&left, &right}, most, best);
  deal_halves(left, most, best);
  deal_halves(right, most, best);
}

void Dealing::deal(const std::vector<int>& sub_axes, double most, Strategy& best) {
  const auto all = [](const std::vector<Unit>& units) {
    std::vector<const Unit*> r;
    r.reserve(units.size());
    for (const Unit& u : units) r.push_back(&u);
    return r;
  };
  const Assignment nothing(s_.rule->factors.size());
  const std::vector<Unit> single = single_units(sub_axes, best);
  if (ways_of(single) <= kMostAtOnce) return deal_units(all(single), nothing, most, best);
  best.narrowed = std::max(best.narrowed, ways_of(single));
  const std::vector<Unit> units = side_by_side(single);
  if (ways_of(units) <= kMostAtOnce) deal_units(all(units), nothing, most, best);
  else deal_pairs(units, most, best);
  for (const Unit& u : units) deal_halves(u, most, best);
}

}  // namespace shardarray

#include "compile/dealing.h"

#include <algorithm>
#include <limits>

#include "compile/even_moves.h"

namespace shardarray {

namespace {

constexpr double kMostAtOnce = 4096, kFew = 256;

template <class C, class T> bool contains(const C& c, const T& value) {
  return std::find(c.begin(), c.end(), value) != c.end();
}

template <class Units> double ways_of(const Units& units) {
  double ways = 1;
  for (const auto& u : units) ways *= static_cast<double>(u.ways.size());
  return ways;
}

using Ways = std::vector<std::vector<std::size_t>>;

// All sub-axes go to one factor, or to `none`.
Ways in_one_piece(std::size_t sub_axes, const std::vector<std::size_t>& factors, std::size_t none) {
  Ways ways;
  for (const std::size_t f : factors) ways.emplace_back(sub_axes, f);
  ways.emplace_back(sub_axes, none);
  return ways;
}

// The number of ways that in_pieces() returns.
double ways_in_pieces(std::size_t sub_axes, std::size_t factors) {
  double all = 0, ways = static_cast<double>(factors + 1);  // with so many pieces
  for (std::size_t pieces = 1; pieces <= std::min(sub_axes, factors + 1); pieces++) {
    all += ways;
    ways *= static_cast<double>((sub_axes - pieces) * (factors + 1 - pieces)) / static_cast<double>(pieces);
  }
  return all;
}

// Sub-axes that go to one factor, or to none, are adjacent; pieces come in any order. For sub-axes of one size other ways move no less: of
// those that a tensor has, only a prefix can stay.
Ways in_pieces(std::size_t sub_axes, const std::vector<std::size_t>& factors, std::size_t none) {
  std::vector<std::size_t> targets = factors;
  targets.push_back(none);
  Ways ways;
  std::vector<std::size_t> way;
  const auto go_on = [&](const auto& again) -> void {
    if (way.size() == sub_axes) return ways.push_back(way);
    for (const std::size_t to : targets) {
      if (contains(way, to) && way.back() != to) continue;
      way.push_back(to);
      again(again);
      way.pop_back();
    }
  };
  go_on(go_on);
  return ways;
}

}  // namespace

Dealing::Dealing(NodePrice& price, const NodeState& s, const SubAxes& sub_axes, Freedom freedom)
    : price_(price), s_(s), sub_axes_(sub_axes), freedom_(freedom) {
  const auto term = [&](const TermState& t) {
    Term r{to_sub_axes(sub_axes, *t.layout), {}, {}};
    r.factors = project(r.dims, *t.factors, *s.rule, sub_axes);
    for (const SubAxisList& held : r.factors) {
      std::vector<std::size_t>& places = r.places.emplace_back(sub_axes.axes.size(), not_there);
      for (std::size_t k = 0; k < held.size(); k++) places[static_cast<std::size_t>(held[k])] = k;
    }
    for (const auto& dim : r.dims)
      for (const int a : dim)
        if (!present_.contains(a) && !s.pending.contains(a)) present_.push_back(a);
    return r;
  };
  const auto place = [&](const Layout& l) {
    if (!sub_axes.can_express(l)) return;
    SubAxisDims& lists = places_.emplace_back(to_sub_axes(sub_axes, l));
    lists.push_back({});
    for (const SubAxis a : l.unreduced()) sub_axes.append(a, lists.back());
  };
  for (const TermState& t : s.operands) {
    if (t.free) continue;
    operands_.push_back(term(t));
    place(*t.layout);
    for (const Layout* l : t.source.copies) place(*l);
    SubAxisList summands;
    for (const SubAxis a : t.layout->unreduced()) sub_axes.append(a, summands);
    for (const int a : summands)
      if (!summed_.contains(a) && !s.pending.contains(a)) summed_.push_back(a);
  }
  for (const TermState& t : s.results) {
    results_.push_back(term(t));
    place(*t.layout);
  }
  for (std::size_t f = 0; f < s.rule->factors.size(); f++)
    if (s.rule->factors[f].role != Role::whole && s.rule->factors[f].size > 1) factors_.push_back(f);
}

SubAxisList Dealing::present_and_idle(Freedom freedom) const {
  SubAxisList all = present_;
  const Form form = s_.node->op->form;
  const bool is_placed =
      std::all_of(s_.results.begin(), s_.results.end(), [](const TermState& t) { return t.weight == 1.0; });
  // otherwise a result would be sharded finer for nothing
  const bool may_share =
      form == Form::gemm || (freedom == Freedom::sharing && is_placed && !s_.is_asked &&
                             !is_elementwise(form) && form != Form::map && form != Form::view);
  if (!may_share || (present_.empty() && !(form == Form::gemm && !summed_.empty()))) return all;
  for (int k = 0; k < static_cast<int>(sub_axes_.axes.size()); k++)
    if (!present_.contains(k) && !s_.pending.contains(k)) all.push_back(k);
  return all;
}

bool Dealing::is_freer() const {
  return freedom_ != Freedom::none &&
         (present_and_idle() != present_and_idle(Freedom::none) || std::ranges::any_of(present_, [&](int a) {
            return agreed_factor(a, freedom_) != agreed_factor(a, Freedom::none);
          }));
}

std::optional<std::size_t> Dealing::agreed_factor(int sub_axis, Freedom freedom) const {
  if (summed_.contains(sub_axis)) return std::nullopt;  // the sum can be scattered along any dimension
  std::optional<std::size_t> agreed;
  int holders = 0;
  bool clash = false;
  for (const std::vector<Term>* terms : {&operands_, &results_})
    for (const Term& t : *terms) {
      bool found = false;
      for (std::size_t f = 0; f < t.factors.size(); f++)
        if (t.factors[f].contains(sub_axis)) {
          clash |= (agreed && *agreed != f) || s_.rule->factors[f].role == Role::whole;
          agreed = f;
          holders++;
          found = true;
        }
      for (const auto& dim : t.dims)
        clash |= !found && dim.contains(sub_axis);  // on a dimension where no factor can hold it
    }
  if (agreed && freedom == Freedom::roaming && !s_.is_asked &&
      (holders < 2 || s_.rule->factors[*agreed].role == Role::reduce))
    return std::nullopt;
  return clash ? std::nullopt : agreed;
}

std::vector<Dealing::Unit> Dealing::single_units(const SubAxisList& sub_axes, const Strategy& best) const {
  // A sub-axis on which all tensors agree stays at its factor or is dropped, unless memory is short.
  const bool may_stay = best.cost < std::numeric_limits<double>::infinity() && best.peak == 0;
  std::vector<Unit> units;
  for (const int a : sub_axes) {
    const std::optional<std::size_t> agreed = may_stay ? agreed_factor(a, freedom_) : std::nullopt;
    Unit& u = units.emplace_back();
    u.sub_axes = {a};
    u.factors = agreed ? std::vector<std::size_t>{*agreed} : factors_;
    u.ways = in_one_piece(1, u.factors, not_there);
  }
  return units;
}

std::vector<Dealing::Unit> Dealing::runs_of(const std::vector<Unit>& single, bool of_one_size) const {
  const auto follows = [&](int a, int b) {
    for (const SubAxisDims& place : places_)
      for (const auto& dim : place) {
        const auto *first = std::find(dim.begin(), dim.end(), a),
                   *second = std::find(dim.begin(), dim.end(), b);
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
        (!of_one_size || sub_axes_.size(units.back().sub_axes.back()) == sub_axes_.size(u.sub_axes[0])) &&
        follows(units.back().sub_axes.back(), u.sub_axes[0]))
      units.back().sub_axes.push_back(u.sub_axes[0]);
    else units.push_back(std::move(u));
  return units;
}

// Sub-axes that a tensor already has on the factor come first, in its order; those that moved there follow.
void Dealing::order(Assignment& a, bool results_first) const {
  for (std::size_t f = 0; f < a.size(); f++) {
    if (a[f].size() < 2) continue;
    const auto sort_as = [&](const std::vector<std::size_t>& places) {
      const auto place = [&](int x) { return places[static_cast<std::size_t>(x)]; };
      if (std::ranges::all_of(a[f], [&](int x) { return place(x) == not_there; })) return false;
      for (auto* x = a[f].begin(); x != a[f].end(); ++x)  // few: std::stable_sort would allocate
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
  const auto each = [&](const auto& give) {  // give(sub-axis, factor)
    for (std::size_t k = 0; k < units.size(); k++) {
      const std::vector<std::size_t>& way = units[k]->ways[choice[k]];
      for (std::size_t j = 0; j < way.size(); j++)
        if (way[j] != not_there) give(units[k]->sub_axes[j], way[j]);
    }
  };
  std::vector<std::int64_t> fixed_parts, parts;
  for (const SubAxisList& f : fixed) fixed_parts.push_back(parts_of(f, sub_axes_));
  const auto consider = [&](double work) {
    Assignment as_results = fixed;
    each([&](int sub_axis, std::size_t factor) { as_results[factor].push_back(sub_axis); });
    Assignment as_operands = as_results;
    order(as_results, true);
    order(as_operands, false);
    price_.consider(as_results, work, most, best);
    if (as_operands != as_results) price_.consider(as_operands, work, most, best);
  };
  for (;;) {
    parts = fixed_parts;
    each([&](int sub_axis, std::size_t factor) { parts[factor] *= sub_axes_.size(sub_axis); });
    if (const double work = price_.work(parts); work < best.cost) consider(work);  // four of five are not
    std::size_t k = 0;
    while (k < choice.size() && ++choice[k] == units[k]->ways.size()) choice[k++] = 0;
    if (k == choice.size()) return;
  }
}

void Dealing::deal_again(const std::vector<const Unit*>& units, double most, Strategy& best) {
  Assignment others = best.assignment;
  if (others.empty()) others.resize(s_.rule->factors.size());
  for (auto& factor : others)
    factor.erase_if([&](int a) {
      return std::any_of(units.begin(), units.end(), [&](const Unit* u) { return u->sub_axes.contains(a); });
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
  const auto* middle = unit.sub_axes.begin() + unit.sub_axes.size() / 2;
  const auto half = [&](auto first, auto last) {
    return Unit{{first, last},
                unit.factors,
                in_one_piece(static_cast<std::size_t>(last - first), unit.factors, not_there)};
  };
  const Unit left = half(unit.sub_axes.begin(), middle), right = half(middle, unit.sub_axes.end());
  deal_again({&left, &right}, most, best);
  deal_halves(left, most, best);
  deal_halves(right, most, best);
}

void Dealing::deal(const SubAxisList& sub_axes, double most, Strategy& best) {
  const auto all = [](const std::vector<Unit>& units) {
    std::vector<const Unit*> r;
    r.reserve(units.size());
    for (const Unit& u : units) r.push_back(&u);
    return r;
  };
  const Assignment nothing(s_.rule->factors.size());
  const std::vector<Unit> single = single_units(sub_axes, best);
  if (ways_of(single) <= kFew) return deal_units(all(single), nothing, most, best);
  std::vector<Unit> runs = runs_of(single, false);
  for (Unit& u : runs) u.ways = in_one_piece(u.sub_axes.size(), u.factors, not_there);
  if (ways_of(runs) <= kMostAtOnce) deal_units(all(runs), nothing, most, best);
  else deal_pairs(runs, most, best);
  // The best so far rules out most of the others.
  std::vector<Unit> pieces = runs_of(single, true);
  double ways = 1;
  for (const Unit& u : pieces) ways *= ways_in_pieces(u.sub_axes.size(), u.factors.size());
  if (ways <= kMostAtOnce) {
    for (Unit& u : pieces) u.ways = in_pieces(u.sub_axes.size(), u.factors, not_there);
    return deal_units(all(pieces), nothing, most, best);
  }
  best.narrowed = std::max(best.narrowed, ways_of(single));
  for (const Unit& u : runs) deal_halves(u, most, best);
}

}  // namespace shardarray

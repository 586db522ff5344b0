#include "compile/decide.h"

#include <algorithm>
#include <limits>

#include "base/ceil_div.h"
#include "compile/halo.h"

namespace shardarray {

namespace {

constexpr double kNowhere = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostCandidates = 4096;

double elements_of_factors(const NodeState& s, const Assignment& a, const Atoms& atoms) {
  double n = 1;
  for (std::size_t f = 0; f < a.size(); f++) {
    std::int64_t tiles = 1;
    for (int atom : a[f]) tiles *= atoms.size(atom);
    const std::int64_t size = s.rule->factors[f].size;
    n *= static_cast<double>(ceil_div(size, tiles));
  }
  return n;
}

}  // namespace

double Decider::transfer(const Layout* from, const Layout* to, const Type& t) {
  if (from == to) return 0;
  auto key =
      std::tuple(from, to, std::vector<std::int64_t>(t.shape.begin(), t.shape.end()), itemsize(t.dtype));
  auto [it, fresh] = transfers_.try_emplace(std::move(key), 0.0);
  if (fresh) it->second = model_.transfer(from, to, t.shape, static_cast<std::int64_t>(itemsize(t.dtype)));
  return it->second;
}

bool Decider::complete(const NodeState& s, Decision& d) const {
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
    auto dims = place(d.assignment, *t.factors, *s.rule, t.type.shape, atoms_);
    if (!dims) return false;
    const bool keeps = !d.pending.empty() && t.layout && !t.layout->unreduced().empty() && t.can_carry;
    d.in.push_back(to_layout(atoms_, *dims, keeps ? d.pending : std::vector<int>{}, Reducer::sum));
  }
  for (const TermState& t : s.results) {
    auto dims = place(d.assignment, *t.factors, *s.rule, t.type.shape, atoms_);
    if (!dims) return false;
    d.out.push_back(to_layout(atoms_, *dims, reduced, reducer));
  }
  return true;
}

double Decider::fetch(const TermState& t, const Layout* to) {
  double least = transfer(t.layout, to, t.type);
  for (const Layout* l : t.copies)
    if (l == to || to->unreduced().empty()) least = std::min(least, transfer(l, to, t.type));
  return least;
}

void Decider::add_cost(const NodeState& s, Decision& d) {
  d.moved = 0;
  for (std::size_t k = 0; k < s.operands.size(); k++) {
    const TermState& t = s.operands[k];
    bool repeated = t.free;
    for (std::size_t j = 0; j < k; j++) repeated |= s.node->in[j] == s.node->in[k] && d.in[j] == d.in[k];
    if (!repeated) d.moved += fetch(t, d.in[k]);
  }
  for (std::size_t k = 0; k < s.results.size(); k++) {
    const TermState& t = s.results[k];
    double to_wish = transfer(d.out[k], t.layout, t.type) * t.weight;
    if (!d.out[k]->unreduced().empty() && d.pending.empty()) {
      // the partial result will be combined somewhere: at its place, or on the way to the wish
      const Layout* here = Layout::of(d.out[k]->order(), d.out[k]->dims());
      const double at_place = transfer(d.out[k], here, t.type) + transfer(here, t.layout, t.type) * t.weight;
      to_wish = std::min(at_place, transfer(d.out[k], t.layout, t.type));
    }
    d.moved += to_wish;
  }
  const double each = s.node->op->form == Form::gemm ? 2 : 1;
  d.cost = d.moved + model_.compute(each * elements_of_factors(s, d.assignment, atoms_));
}

void Decider::add_halo(const NodeState& s, Decision& d) const {
  if (!s.node->op->boxes || !halo_is_cut(*s.rule, d.assignment)) return;
  const double halo = model_.moved(halo_transfer(*s.node, d.in, d.out[0]).bytes);
  d.moved += halo;
  d.cost += halo;
}

Assignment Decider::merged(const NodeState& s) const {
  Assignment a(s.rule->factors.size());
  std::vector<int> used = s.pending;
  // What is there is extended, up to an atom that another factor holds.
  auto join = [&](const TermState& t) {
    const Assignment p = project(to_atoms(atoms_, *t.layout), *t.factors, *s.rule, atoms_);
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

std::vector<int> Decider::present_atoms(const NodeState& s) const {
  std::vector<int> present;
  auto add = [&](const TermState& t) {
    for (const auto& dim : to_atoms(atoms_, *t.layout))
      for (int atom : dim)
        if (std::find(present.begin(), present.end(), atom) == present.end() &&
            std::find(s.pending.begin(), s.pending.end(), atom) == s.pending.end())
          present.push_back(atom);
  };
  for (const TermState& t : s.operands)
    if (!t.free) add(t);
  for (const TermState& t : s.results) add(t);
  return present;
}

// Of a product: axes that no tensor uses could take a part of the work instead of repeating it.
std::vector<int> Decider::idle_atoms(const NodeState& s, const std::vector<int>& present) const {
  std::vector<int> idle;
  if (present.empty() || s.node->op->form != Form::gemm) return idle;
  for (int k = 0; k < static_cast<int>(atoms_.axes.size()); k++)
    if (std::find(present.begin(), present.end(), k) == present.end() &&
        std::find(s.pending.begin(), s.pending.end(), k) == s.pending.end())
      idle.push_back(k);
  return idle;
}

// Atoms that a tensor already has on the factor come first, in its order; moved ones after them.
void Decider::order_atoms(const NodeState& s, Assignment& a) const {
  std::vector<Assignment> projections;
  for (const TermState& t : s.results)
    projections.push_back(project(to_atoms(atoms_, *t.layout), *t.factors, *s.rule, atoms_));
  for (const TermState& t : s.operands)
    if (!t.free) projections.push_back(project(to_atoms(atoms_, *t.layout), *t.factors, *s.rule, atoms_));
  for (std::size_t f = 0; f < a.size(); f++) {
    if (a[f].size() < 2) continue;
    for (const Assignment& p : projections) {
      auto rank = [&](int atom) { return std::find(p[f].begin(), p[f].end(), atom) - p[f].begin(); };
      const bool knows = std::any_of(a[f].begin(), a[f].end(), [&](int atom) {
        return rank(atom) < static_cast<std::ptrdiff_t>(p[f].size());
      });
      if (!knows) continue;
      std::stable_sort(a[f].begin(), a[f].end(), [&](int x, int y) { return rank(x) < rank(y); });
      break;
    }
  }
}

void Decider::consider(const NodeState& s, Assignment a, double most, Decision& best) {
  Decision d;
  d.assignment = std::move(a);
  d.pending = s.pending;
  if (!complete(s, d)) return;
  add_cost(s, d);
  const auto is_better = [&] { return d.cost < best.cost - 1e-9 && d.moved <= most; };
  if (!is_better()) return;
  add_halo(s, d);
  if (is_better()) {
    d.ways = best.ways;
    best = std::move(d);
  }
}

std::optional<std::size_t> Decider::agreed_factor(const NodeState& s, int atom) const {
  std::optional<std::size_t> agreed;
  bool clash = false;
  auto look = [&](const TermState& t) {
    const Assignment p = project(to_atoms(atoms_, *t.layout), *t.factors, *s.rule, atoms_);
    bool found = false;
    for (std::size_t f = 0; f < p.size(); f++)
      if (std::find(p[f].begin(), p[f].end(), atom) != p[f].end()) {
        clash |= (agreed && *agreed != f) || s.rule->factors[f].role == Role::whole;
        agreed = f;
        found = true;
      }
    for (const auto& dim : to_atoms(atoms_, *t.layout))
      if (!found && std::find(dim.begin(), dim.end(), atom) != dim.end())
        clash = true;  // it stands where no factor can hold it
  };
  for (const TermState& t : s.operands)
    if (!t.free) look(t);
  for (const TermState& t : s.results) look(t);
  return clash ? std::nullopt : agreed;
}

void Decider::enumerate(const NodeState& s, const std::vector<int>& atoms, double most, Decision& best) {
  std::vector<std::size_t> factors;
  for (std::size_t f = 0; f < s.rule->factors.size(); f++)
    if (s.rule->factors[f].role != Role::whole && s.rule->factors[f].size > 1) factors.push_back(f);
  // An atom on which all tensors agree stays at its factor or leaves; it does not wander.
  std::vector<std::vector<std::size_t>> choices;
  double count = 1;
  for (int atom : atoms) {
    const std::optional<std::size_t> agreed = best.cost < kNowhere ? agreed_factor(s, atom) : std::nullopt;
    choices.push_back(agreed ? std::vector<std::size_t>{*agreed} : factors);
    count *= static_cast<double>(choices.back().size() + 1);
  }
  if (count > static_cast<double>(kMostCandidates)) {  // the merged one stands
    best.ways = std::max(best.ways, count);
    return;
  }
  std::vector<std::size_t> choice(atoms.size(), 0);
  for (;;) {
    Assignment a(s.rule->factors.size());
    for (std::size_t k = 0; k < atoms.size(); k++)
      if (choice[k] < choices[k].size()) a[choices[k][choice[k]]].push_back(atoms[k]);
    order_atoms(s, a);
    consider(s, std::move(a), most, best);
    std::size_t k = 0;
    while (k < choice.size() && ++choice[k] > choices[k].size()) choice[k++] = 0;
    if (k == choice.size()) return;
  }
}

Decision Decider::decide(const NodeState& s) {
  Decision best;
  best.cost = kNowhere;
  consider(s, merged(s), kNowhere, best);
  const double floor = best.cost == kNowhere
                           ? kNowhere
                           : model_.compute((s.node->op->form == Form::gemm ? 2 : 1) *
                                            elements_of_factors(s, best.assignment, atoms_));
  bool at_wish = best.cost != kNowhere && best.cost <= floor;
  if (!at_wish && (s.node->modes->policy != Policy::follow || best.cost == kNowhere)) {
    std::vector<int> atoms = present_atoms(s);
    enumerate(s, atoms, kNowhere, best);
    const std::vector<int> idle = idle_atoms(s, atoms);
    atoms.insert(atoms.end(), idle.begin(), idle.end());
    if (!idle.empty()) enumerate(s, atoms, best.moved, best);  // idle axes may save work, not cost bytes
  }
  if (best.cost == kNowhere) {  // nothing fits: everything whole
    best.assignment.assign(s.rule->factors.size(), {});
    best.pending = s.pending;
    complete(s, best);
  }
  return best;
}

}  // namespace shardarray

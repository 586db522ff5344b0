#include "compile/node_price.h"

#include <algorithm>

#include "base/ceil_div.h"
#include "base/sizes.h"
#include "compile/even_moves.h"
#include "compile/halo.h"
#include "compile/making.h"
#include "compile/scan.h"
#include "layout/tiles.h"

namespace shardarray {

namespace {

constexpr double kRefused = 1e6;

MoveCost smaller(const MoveCost& a, const MoveCost& b) { return b.all() < a.all() ? b : a; }

}  // namespace

NodePrice::NodePrice(const NodeState& s, SubAxisLayouts& layouts, Reshards& reshards)
    : s_(s),
      layouts_(layouts),
      sub_axes_(layouts.sub_axes()),
      reshards_(reshards),
      model_(reshards.model()),
      operand_costs_(s.operands.size()),
      result_costs_(s.results.size()),
      sources_(s.operands.size()),
      in_(s.operands.size()),
      out_(s.results.size()),
      is_there_(s.operands.size()) {
  for (std::size_t k = 0; k < s.operands.size(); k++) {
    const TermState& t = s.operands[k];
    if (t.free || !t.source.rules.empty()) continue;
    if (!std::ranges::all_of(t.source.copies, [&](const Layout* l) { return layouts.can_express(l); }))
      continue;
    sources_[k].push_back(place_of(*t.source.layout));
    for (const Layout* l : t.source.copies) sources_[k].push_back(place_of(*l));
  }
  for (const TermState& t : s.results) preferences_.push_back(place_of(*t.layout));
}

NodePrice::Place NodePrice::place_of(const Layout& l) const {
  Place p{to_sub_axes(sub_axes_, l), {}};
  for (const SubAxis a : l.unreduced()) sub_axes_.append(a, p.summed);
  return p;
}

bool NodePrice::sums_fit(const Assignment& a) const {
  if (!s_.pending.empty() && cut_factor(*s_.rule, a, Role::scan))
    return false;  // carries of a scan cannot be summands
  Reducer reducer = s_.pending.empty() ? Reducer::none : Reducer::sum;
  for (std::size_t f = 0; f < a.size(); f++)
    if (const Factor& factor = s_.rule->factors[f]; factor.role == Role::reduce && !a[f].empty()) {
      if (reducer != Reducer::none && reducer != factor.reducer) return false;
      reducer = factor.reducer;
    }
  return true;
}

std::vector<const Layout*> NodePrice::layouts(const std::vector<Placed>& all) {
  std::vector<const Layout*> r;
  r.reserve(all.size());
  for (const Placed& p : all) r.push_back(layout(p));
  return r;
}

// The cost of a move between even tiles, the same as by Reshards.
std::optional<MoveCost> NodePrice::even_cost(const SubAxisDims& from, const SubAxisDims& to,
                                             const Type& t) const {
  const std::optional<std::int64_t> moved = even_move(from, to, t.shape, sub_axes_);
  if (!moved) return std::nullopt;
  const auto size = static_cast<std::int64_t>(itemsize(t.dtype));
  const auto held = [&](const SubAxisDims& dims) {
    return mul_sizes(tile_elements(dims, t.shape, sub_axes_), size);
  };
  const bool takes_memory = *moved > 0 && model_.has_peaks();
  return MoveCost{model_.transfer(*moved * size),
                  takes_memory ? model_.peak(add_sizes(held(from), held(to))) : 0};
}

// From the nearest source, if moves from all of them are even.
std::optional<MoveCost> NodePrice::even_fetch(std::size_t k, const Placed& to) const {
  if (!to.summed.empty() && sources_[k].size() > 1) return std::nullopt;
  std::optional<MoveCost> least;
  for (const Place& from : sources_[k]) {
    if (from.summed != to.summed) return std::nullopt;
    const auto cost = even_cost(from.dims, to.dims, s_.operands[k].source.type);
    if (!cost) return std::nullopt;
    least = least ? smaller(*least, *cost) : *cost;
  }
  return least;
}

MoveCost NodePrice::fetch(std::size_t k, const Layout* there) {
  const TermSource& s = s_.operands[k].source;
  for (const Rule* rule : s.rules) there = layout_of_operand(*rule, 0, *there);
  MoveCost least = reshards_.cost(s.layout, there, s.type);
  for (const Layout* l : s.copies)
    if (l == there || there->unreduced().empty()) least = smaller(least, reshards_.cost(l, there, s.type));
  return least;
}

MoveCost NodePrice::operand_cost(std::size_t k, const Placed& p) {
  const Layout* const there = layout(p);
  const auto [it, fresh] = operand_costs_[k].try_emplace(there);
  if (fresh) it->second = fetch(k, there) * (s_.operands[k].should_stay ? kRefused : 1);
  return it->second;
}

MoveCost NodePrice::result_cost(std::size_t k, const Placed& p) {
  const Layout* const made = layout(p);
  const auto [it, fresh] = result_costs_[k].try_emplace(made);
  if (fresh) it->second = to_preference(s_.results[k], made);
  return it->second;
}

bool NodePrice::place_operand(const Assignment& a, std::size_t k) {
  const TermState& t = s_.operands[k];
  Placed& p = in_[k];
  if (!place(a, *t.factors, *s_.rule, t.type.shape, sub_axes_, p.dims)) return false;
  p.summed = {};
  p.reducer = Reducer::none;
  p.cost = {};
  p.has_cost = true;
  const bool carries = t.layout && !t.layout->unreduced().empty() && t.can_carry;
  if (!s_.pending.empty() && (carries || t.can_split)) {
    p.summed = s_.pending;
    p.reducer = Reducer::sum;
  }
  if (t.free) return true;
  if (const auto cost = even_fetch(k, p)) {
    p.cost = *cost * (t.should_stay ? kRefused : 1);
    return true;
  }
  p.has_cost = !(sources_[k].size() == 1 && !sources_[k][0].summed.empty() && p.summed.empty());
  p.cost = p.has_cost ? operand_cost(k, p)
                      : least_of_sums(sources_[k][0], t.source.type) * (t.should_stay ? kRefused : 1);
  return true;
}

MoveCost NodePrice::to_preference(const TermState& t, const Layout* made) {
  const MoveCost direct = reshards_.cost(made, t.layout, t.type);
  if (made->unreduced().empty() || !s_.pending.empty()) return direct * t.weight;
  // a partial sum will be combined somewhere: in place, or on the way to the preference
  const Layout* here = Layout::of(made->order(), made->dims());
  return smaller(reshards_.cost(made, here, t.type) + reshards_.cost(here, t.layout, t.type) * t.weight,
                 direct);
}

// A lower bound: however it is combined, each device receives the others' summands of its part, or replicas share that.
MoveCost NodePrice::least_of_sums(const Place& from, const Type& t) const {
  const std::int64_t summands = parts_of(from.summed, sub_axes_);
  const std::int64_t bytes =
      mul_sizes(tile_elements(from.dims, t.shape, sub_axes_), static_cast<std::int64_t>(itemsize(t.dtype)));
  std::int64_t shares = summands;
  if (model_.replicas_are_apart()) {
    shares = sub_axes_.order->size();
    for (const SubAxisList& dim : from.dims) shares /= parts_of(dim, sub_axes_);
  }
  return {model_.transfer(ceil_div(mul_sizes(summands - 1, bytes), shares)), 0};
}

bool NodePrice::place_result(const Assignment& a, std::size_t k) {
  const TermState& t = s_.results[k];
  Placed& p = out_[k];
  if (!place(a, *t.factors, *s_.rule, t.type.shape, sub_axes_, p.dims)) return false;
  p.summed = s_.pending;
  p.reducer = s_.pending.empty() ? Reducer::none : Reducer::sum;
  p.has_cost = true;
  for (std::size_t f = 0; f < a.size(); f++)
    if (const Factor& factor = s_.rule->factors[f]; factor.role == Role::reduce && !a[f].empty()) {
      p.reducer = factor.reducer;
      p.summed.append(a[f].begin(), a[f].end());
    }
  const Place& to = preferences_[k];
  if (p.summed.empty() && to.summed.empty())
    if (const auto cost = even_cost(p.dims, to.dims, t.type)) {
      p.cost = *cost * t.weight;
      return true;
    }
  p.has_cost = p.summed.empty() || !to.summed.empty() || !s_.pending.empty();
  p.cost = p.has_cost ? result_cost(k, p) : least_of_sums({p.dims, p.summed}, t.type);
  return true;
}

// Products combine every element of one operand with many of the other; all other ops visit each once.
double NodePrice::work(const std::vector<std::int64_t>& parts) const {
  SmallVector<double, 8> sizes;
  double all = 1, most = 0;
  for (std::size_t f = 0; f < parts.size(); f++) {
    sizes.push_back(static_cast<double>(ceil_div(s_.rule->factors[f].size, parts[f])));
    all *= sizes.back();
  }
  const Op& op = *s_.node->op;
  if (op.form == Form::gemm) return model_.product(2 * all, s_.node->in_types[0].dtype, s_.node->modes->tf32);
  if (op.windows) return model_.compute(all);
  const auto add = [&](const TermState& t) {
    double n = 1;
    for (const DimFactors& dim : *t.factors)
      for (const int f : dim) n *= sizes[static_cast<std::size_t>(f)];
    most = std::max(most, n);
  };
  for (const TermState& t : s_.operands) add(t);
  for (const TermState& t : s_.results) add(t);
  return model_.compute(most);
}

double NodePrice::work(const Assignment& a) const {
  std::vector<std::int64_t> parts;
  parts.reserve(a.size());
  for (const SubAxisList& sub_axes : a) parts.push_back(parts_of(sub_axes, sub_axes_));
  return work(parts);
}

// Whether operand k is free: made in place, or already brought for an earlier operand.
bool NodePrice::is_there(std::size_t k) const {
  bool there = s_.operands[k].free;
  for (std::size_t j = 0; j < k; j++)
    there |= s_.node->in[j] == s_.node->in[k] && in_[j].dims == in_[k].dims && in_[j].summed == in_[k].summed;
  return there;
}

// Bytes that a device holds for the node: operands in the layouts it needs, and results.
std::int64_t NodePrice::bytes_at_once(const Strategy& d) const {
  std::int64_t bytes = 0;
  const auto add = [&](const Layout& l, const Type& t) {
    bytes = add_sizes(bytes, tile_bytes(l, t.shape, static_cast<std::int64_t>(itemsize(t.dtype))));
  };
  for (std::size_t k = 0; k < s_.operands.size(); k++)
    if (!is_there_[k]) add(*d.in[k], s_.operands[k].type);
  for (std::size_t k = 0; k < s_.results.size(); k++) add(*d.out[k], s_.results[k].type);
  return bytes;
}

std::int64_t neighbours_bytes(const NodeState& s, const Strategy& d) {
  const FlatNode& n = *s.node;
  std::int64_t bytes = 0;
  if (n.op->boxes && cut_factor(*s.rule, d.assignment, Role::halo))
    bytes = halo_transfer(n, d.in, d.out[0]).bytes;
  else if (n.op->windows)
    for (const Window& w : windows_of(n, d.in, d.out)) bytes += w.transfer.bytes;
  else if (const auto f = cut_factor(*s.rule, d.assignment, Role::scan))
    bytes = carry_transfer(n, *d.in[0], scanned_dim(*s.rule, *f)).bytes;
  return bytes;
}

// Counted device by device, and repeated in many searches: cached.
std::int64_t NodePrice::neighbours(const Strategy& d) {
  const Op& op = *s_.node->op;
  const auto scan = cut_factor(*s_.rule, d.assignment, Role::scan);
  if (!op.windows && !scan && !cut_factor(*s_.rule, d.assignment, Role::halo)) return 0;
  StateKey key;
  KeyWriter k(key);
  k.add(s_.kind);
  k.add(scan ? static_cast<std::int64_t>(*scan) : -1);
  for (const auto* layouts : {&d.in, &d.out})
    for (const Layout* l : *layouts) k.add(l);
  return reshards_.neighbours(key, [&] { return neighbours_bytes(s_, d); });
}

MoveCost NodePrice::total() const {
  MoveCost moves;
  for (std::size_t k = 0; k < in_.size(); k++)
    if (!is_there_[k]) moves += in_[k].cost;
  for (const Placed& p : out_) moves += p.cost;
  return moves;
}

void NodePrice::consider(const Assignment& a, double computed, double most, Strategy& best) {
  if (!sums_fit(a)) return;
  MoveCost moves;
  const auto is_better = [&] { return moves.all() + computed < best.cost - 1e-9 && moves.moved <= most; };
  if (!is_better()) return;
  for (std::size_t k = 0; k < in_.size(); k++) {
    if (!place_operand(a, k)) return;
    is_there_[k] = is_there(k);
    if (!is_there_[k]) moves += in_[k].cost;
    if (!is_better()) return;
  }
  for (std::size_t k = 0; k < out_.size(); k++) {
    if (!place_result(a, k)) return;
    moves += out_[k].cost;
    if (!is_better()) return;
  }
  if (left_out_ && std::ranges::find(*left_out_, layouts(in_)) != left_out_->end()) return;
  // Computes an unknown cost; false if the candidate is then no better.
  const auto find_cost = [&](Placed& p, const auto& cost) {
    if (p.has_cost) return true;
    p.cost = cost();
    p.has_cost = true;
    moves = total();
    return is_better();
  };
  for (std::size_t k = 0; k < in_.size(); k++)
    if (!is_there_[k] && !find_cost(in_[k], [&] { return operand_cost(k, in_[k]); })) return;
  for (std::size_t k = 0; k < out_.size(); k++)
    if (!find_cost(out_[k], [&] { return result_cost(k, out_[k]); })) return;
  Strategy d{a, s_.pending, layouts(in_), layouts(out_)};
  if (model_.has_peaks()) moves.peak += model_.peak(bytes_at_once(d));
  moves.moved += model_.halo(neighbours(d));
  if (!is_better()) return;
  d.moved = moves.moved;
  d.peak = moves.peak;
  d.cost = moves.all() + computed;
  d.narrowed = best.narrowed;
  best = std::move(d);
}

Strategy NodePrice::uncut() {
  Strategy d;
  d.assignment.resize(s_.rule->factors.size());
  d.pending = s_.pending;
  for (std::size_t k = 0; k < in_.size(); k++) place_operand(d.assignment, k);
  for (std::size_t k = 0; k < out_.size(); k++) place_result(d.assignment, k);
  d.in = layouts(in_);
  d.out = layouts(out_);
  return d;
}

}  // namespace shardarray

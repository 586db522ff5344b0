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

NodePrice::NodePrice(const NodeState& s, const SubAxes& sub_axes, Reshards& reshards)
    : s_(s),
      sub_axes_(sub_axes),
      reshards_(reshards),
      model_(reshards.model()),
      operands_(s.operands.size()),
      results_(s.results.size()),
      sources_(s.operands.size()),
      in_(s.operands.size()),
      out_(s.results.size()),
      is_there_(s.operands.size()) {
  for (std::size_t k = 0; k < s.operands.size(); k++) {
    const TermState& t = s.operands[k];
    if (t.free || !t.source.rules.empty()) continue;
    if (!std::ranges::all_of(t.source.copies, [&](const Layout* l) { return sub_axes.can_express(*l); }))
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
    return false;  // its carries are not in parts
  Reducer reducer = s_.pending.empty() ? Reducer::none : Reducer::sum;
  for (std::size_t f = 0; f < a.size(); f++)
    if (const Factor& factor = s_.rule->factors[f]; factor.role == Role::reduce && !a[f].empty()) {
      if (reducer != Reducer::none && reducer != factor.reducer) return false;
      reducer = factor.reducer;
    }
  return true;
}

void NodePrice::add_to_key(const Assignment& a, std::size_t factor) {
  for (const int sub_axis : a[factor]) key_.push_back(static_cast<char>(sub_axis + 1));
  key_.push_back('\0');
}

void NodePrice::start_key(const Assignment& a, const TermState& t) {
  key_.clear();
  for (const DimFactors& dim : *t.factors)
    for (const int f : dim) add_to_key(a, static_cast<std::size_t>(f));
}

const Layout* NodePrice::layout(Placed& p) const {
  if (!p.layout) p.layout = to_layout(sub_axes_, *p.dims, p.summed, p.reducer);
  return p.layout;
}

// Of a movement between even tiles, as Reshards has it.
std::optional<MoveCost> NodePrice::even_cost(const Place& from, const SubAxisDims& to, const Type& t) const {
  const std::optional<std::int64_t> moved = even_move(from.dims, to, t.shape, sub_axes_);
  if (!moved) return std::nullopt;
  const auto size = static_cast<std::int64_t>(itemsize(t.dtype));
  const auto held = [&](const SubAxisDims& dims) {
    return mul_sizes(tile_elements(dims, t.shape, sub_axes_), size);
  };
  const bool takes_memory = *moved > 0 && model_.has_peaks();
  return MoveCost{model_.transfer(*moved * size),
                  takes_memory ? model_.peak(add_sizes(held(from.dims), held(to))) : 0};
}

// From the nearest place, where it comes from any of them by such a movement.
std::optional<MoveCost> NodePrice::even_fetch(std::size_t k, const Placed& to) const {
  if (!to.summed.empty() && sources_[k].size() > 1) return std::nullopt;
  std::optional<MoveCost> least;
  for (const Place& from : sources_[k]) {
    if (from.summed != to.summed) return std::nullopt;
    const auto cost = even_cost(from, *to.dims, s_.operands[k].source.type);
    if (!cost) return std::nullopt;
    least = least ? smaller(*least, *cost) : *cost;
  }
  return least;
}

MoveCost NodePrice::fetch(std::size_t k, Placed& to) {
  const TermSource& s = s_.operands[k].source;
  const Layout* there = layout(to);
  for (const Rule* rule : s.rules) there = layout_of_operand(*rule, 0, *there);
  MoveCost least = reshards_.cost(s.layout, there, s.type);
  for (const Layout* l : s.copies)
    if (l == there || there->unreduced().empty()) least = smaller(least, reshards_.cost(l, there, s.type));
  return least;
}

NodePrice::Placed& NodePrice::operand(const Assignment& a, std::size_t k) {
  const TermState& t = s_.operands[k];
  start_key(a, t);
  const auto [it, fresh] = operands_[k].try_emplace(key_);
  Placed& p = it->second;
  if (!fresh) return p;
  p.dims = place(a, *t.factors, *s_.rule, t.type.shape, sub_axes_);
  if (!p.dims) return p;
  const bool carries = t.layout && !t.layout->unreduced().empty() && t.can_carry;
  if (!s_.pending.empty() && (carries || t.can_split)) {
    p.summed = s_.pending;
    p.reducer = Reducer::sum;
  }
  if (t.free) return p;
  const double factor = t.should_stay ? kRefused : 1;
  if (const auto cost = even_fetch(k, p)) {
    p.cost = *cost * factor;
    return p;
  }
  p.has_cost = !(sources_[k].size() == 1 && !sources_[k][0].summed.empty() && p.summed.empty());
  p.cost = (p.has_cost ? fetch(k, p) : least_of_sums(sources_[k][0], t.source.type)) * factor;
  return p;
}

MoveCost NodePrice::to_preference(const TermState& t, const Layout* made) {
  const MoveCost direct = reshards_.cost(made, t.layout, t.type);
  if (made->unreduced().empty() || !s_.pending.empty()) return direct * t.weight;
  // the partial result will be combined somewhere: at its place, or on the way to the preference
  const Layout* here = Layout::of(made->order(), made->dims());
  return smaller(reshards_.cost(made, here, t.type) + reshards_.cost(here, t.layout, t.type) * t.weight,
                 direct);
}

// Whatever becomes of partial sums, each device receives what the others have of its part, or replicas share that.
MoveCost NodePrice::least_of_sums(const Place& from, const Type& t) const {
  const std::int64_t summands = parts_of(from.summed, sub_axes_);
  const std::int64_t bytes =
      mul_sizes(tile_elements(from.dims, t.shape, sub_axes_), static_cast<std::int64_t>(itemsize(t.dtype)));
  std::int64_t shares = summands;
  if (model_.replicas_are_apart()) {
    shares = sub_axes_.order->size();
    for (const std::vector<int>& dim : from.dims) shares /= parts_of(dim, sub_axes_);
  }
  return {model_.transfer(ceil_div(mul_sizes(summands - 1, bytes), shares)), 0};
}

NodePrice::Placed& NodePrice::result(const Assignment& a, std::size_t k) {
  const TermState& t = s_.results[k];
  const std::vector<Factor>& factors = s_.rule->factors;
  start_key(a, t);
  for (std::size_t f = 0; f < a.size(); f++)
    if (factors[f].role == Role::reduce) add_to_key(a, f);
  const auto [it, fresh] = results_[k].try_emplace(key_);
  Placed& p = it->second;
  if (!fresh) return p;
  p.dims = place(a, *t.factors, *s_.rule, t.type.shape, sub_axes_);
  if (!p.dims) return p;
  p.summed = s_.pending;
  p.reducer = s_.pending.empty() ? Reducer::none : Reducer::sum;
  for (std::size_t f = 0; f < a.size(); f++)
    if (factors[f].role == Role::reduce && !a[f].empty()) {
      p.reducer = factors[f].reducer;
      p.summed.insert(p.summed.end(), a[f].begin(), a[f].end());
    }
  const Place made{*p.dims, p.summed};
  const Place& to = preferences_[k];
  if (made.summed.empty() && to.summed.empty())
    if (const auto cost = even_cost(made, to.dims, t.type)) {
      p.cost = *cost * t.weight;
      return p;
    }
  p.has_cost = p.summed.empty() || !to.summed.empty() || !s_.pending.empty();
  p.cost = p.has_cost ? to_preference(t, layout(p)) : least_of_sums(made, t.type);
  return p;
}

// Products multiply every element of one operand with many of the other; all other ops look at each once.
double NodePrice::work(const std::vector<std::int64_t>& parts) const {
  const auto size = [&](std::size_t f) {
    return static_cast<double>(ceil_div(s_.rule->factors[f].size, parts[f]));
  };
  const Op& op = *s_.node->op;
  double all = 1, most = 0;
  for (std::size_t f = 0; f < parts.size(); f++) all *= size(f);
  if (op.form == Form::gemm) return model_.product(2 * all, s_.node->in_types[0].dtype, s_.node->modes->tf32);
  if (op.windows) return model_.compute(all);
  const auto add = [&](const TermState& t) {
    double n = 1;
    for (const DimFactors& dim : *t.factors)
      for (const int f : dim) n *= size(static_cast<std::size_t>(f));
    most = std::max(most, n);
  };
  for (const TermState& t : s_.operands) add(t);
  for (const TermState& t : s_.results) add(t);
  return model_.compute(most);
}

double NodePrice::work(const Assignment& a) const {
  std::vector<std::int64_t> parts;
  parts.reserve(a.size());
  for (const std::vector<int>& sub_axes : a) parts.push_back(parts_of(sub_axes, sub_axes_));
  return work(parts);
}

// Whether operand k comes at no cost: made in its place, or there already for an operand before it.
bool NodePrice::is_there(std::size_t k) const {
  bool there = s_.operands[k].free;
  for (std::size_t j = 0; j < k; j++)
    there |=
        s_.node->in[j] == s_.node->in[k] && in_[j]->dims == in_[k]->dims && in_[j]->summed == in_[k]->summed;
  return there;
}

// What a device holds for the node: operands where it needs them, and results.
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

MoveCost NodePrice::total() const {
  MoveCost moves;
  for (std::size_t k = 0; k < in_.size(); k++)
    if (!is_there_[k]) moves += in_[k]->cost;
  for (const Placed* p : out_) moves += p->cost;
  return moves;
}

void NodePrice::consider(const Assignment& a, double most, Strategy& best) {
  if (!sums_fit(a)) return;
  MoveCost moves;
  const double computed = work(a);
  const auto is_better = [&] { return moves.all() + computed < best.cost - 1e-9 && moves.moved <= most; };
  if (!is_better()) return;
  for (std::size_t k = 0; k < in_.size(); k++) {
    in_[k] = &operand(a, k);
    if (!in_[k]->dims) return;
    is_there_[k] = is_there(k);
    if (!is_there_[k]) moves += in_[k]->cost;
    if (!is_better()) return;
  }
  for (std::size_t k = 0; k < out_.size(); k++) {
    out_[k] = &result(a, k);
    if (!out_[k]->dims) return;
    moves += out_[k]->cost;
    if (!is_better()) return;
  }
  const auto layouts = [&](const std::vector<Placed*>& all) {
    std::vector<const Layout*> r;
    r.reserve(all.size());
    for (Placed* p : all) r.push_back(layout(*p));
    return r;
  };
  if (left_out_ && std::ranges::find(*left_out_, layouts(in_)) != left_out_->end()) return;
  // Whether what is not known yet is as little as it may be.
  const auto find_cost = [&](Placed& p, const auto& cost) {
    if (p.has_cost) return true;
    p.cost = cost();
    p.has_cost = true;
    moves = total();
    return is_better();
  };
  for (std::size_t k = 0; k < in_.size(); k++)
    if (!is_there_[k] &&
        !find_cost(*in_[k], [&] { return fetch(k, *in_[k]) * (s_.operands[k].should_stay ? kRefused : 1); }))
      return;
  for (std::size_t k = 0; k < out_.size(); k++)
    if (!find_cost(*out_[k], [&] { return to_preference(s_.results[k], layout(*out_[k])); })) return;
  Strategy d{a, s_.pending, layouts(in_), layouts(out_)};
  if (model_.has_peaks()) moves.peak += model_.peak(bytes_at_once(d));
  moves.moved += model_.halo(neighbours_bytes(s_, d));
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
  for (std::size_t k = 0; k < in_.size(); k++) d.in.push_back(layout(operand(d.assignment, k)));
  for (std::size_t k = 0; k < out_.size(); k++) d.out.push_back(layout(result(d.assignment, k)));
  return d;
}

}  // namespace shardarray

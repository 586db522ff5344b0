#include "compile/node_price.h"

#include <algorithm>

#include "base/ceil_div.h"
#include "base/sizes.h"
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
      in_(s.operands.size()),
      out_(s.results.size()) {}

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

MoveCost NodePrice::fetch(const TermSource& s, const Layout* to) {
  for (const Rule* rule : s.rules) to = layout_of_operand(*rule, 0, *to);
  MoveCost least = reshards_.cost(s.layout, to, s.type);
  for (const Layout* l : s.copies)
    if (l == to || to->unreduced().empty()) least = smaller(least, reshards_.cost(l, to, s.type));
  return least;
}

const NodePrice::Placed& NodePrice::operand(const Assignment& a, std::size_t k) {
  const TermState& t = s_.operands[k];
  start_key(a, t);
  const auto [it, fresh] = operands_[k].try_emplace(key_);
  if (!fresh) return it->second;
  const auto dims = place(a, *t.factors, *s_.rule, t.type.shape, sub_axes_);
  if (!dims) return it->second;
  const bool carries = t.layout && !t.layout->unreduced().empty() && t.can_carry;
  const bool keeps = !s_.pending.empty() && (carries || t.can_split);
  it->second.layout = to_layout(sub_axes_, *dims, keeps ? s_.pending : std::vector<int>{}, Reducer::sum);
  if (!t.free) it->second.cost = fetch(t.source, it->second.layout) * (t.should_stay ? kRefused : 1);
  return it->second;
}

MoveCost NodePrice::to_preference(const TermState& t, const Layout* made) {
  const MoveCost direct = reshards_.cost(made, t.layout, t.type);
  if (made->unreduced().empty() || !s_.pending.empty()) return direct * t.weight;
  // the partial result will be combined somewhere: at its place, or on the way to the preference
  const Layout* here = Layout::of(made->order(), made->dims());
  return smaller(reshards_.cost(made, here, t.type) + reshards_.cost(here, t.layout, t.type) * t.weight,
                 direct);
}

const NodePrice::Placed& NodePrice::result(const Assignment& a, std::size_t k) {
  const TermState& t = s_.results[k];
  const std::vector<Factor>& factors = s_.rule->factors;
  start_key(a, t);
  for (std::size_t f = 0; f < a.size(); f++)
    if (factors[f].role == Role::reduce) add_to_key(a, f);
  const auto [it, fresh] = results_[k].try_emplace(key_);
  if (!fresh) return it->second;
  const auto dims = place(a, *t.factors, *s_.rule, t.type.shape, sub_axes_);
  if (!dims) return it->second;
  std::vector<int> reduced = s_.pending;
  Reducer reducer = s_.pending.empty() ? Reducer::none : Reducer::sum;
  for (std::size_t f = 0; f < a.size(); f++)
    if (factors[f].role == Role::reduce && !a[f].empty()) {
      reducer = factors[f].reducer;
      reduced.insert(reduced.end(), a[f].begin(), a[f].end());
    }
  it->second.layout = to_layout(sub_axes_, *dims, reduced, reducer);
  it->second.cost = to_preference(t, it->second.layout);
  return it->second;
}

// Products multiply every element of one operand with many of the other; all other ops look at each once.
double NodePrice::work(const Assignment& a) const {
  const auto size = [&](std::size_t f) {
    std::int64_t tiles = 1;
    for (const int sub_axis : a[f]) tiles *= sub_axes_.size(sub_axis);
    return static_cast<double>(ceil_div(s_.rule->factors[f].size, tiles));
  };
  const Op& op = *s_.node->op;
  double all = 1, most = 0;
  for (std::size_t f = 0; f < a.size(); f++) all *= size(f);
  if (op.form == Form::gemm || op.windows) return model_.compute(op.form == Form::gemm ? 2 * all : all);
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

// Whether operand k comes at no cost: made in its place, or there already for an operand before it.
bool NodePrice::is_there(const std::vector<const Layout*>& in, std::size_t k) const {
  bool there = s_.operands[k].free;
  for (std::size_t j = 0; j < k; j++) there |= s_.node->in[j] == s_.node->in[k] && in[j] == in[k];
  return there;
}

// What a device holds for the node: operands where it needs them, and results.
std::int64_t NodePrice::bytes_at_once(const Strategy& d) const {
  std::int64_t bytes = 0;
  const auto add = [&](const Layout& l, const Type& t) {
    bytes = add_sizes(bytes, tile_bytes(l, t.shape, static_cast<std::int64_t>(itemsize(t.dtype))));
  };
  for (std::size_t k = 0; k < s_.operands.size(); k++)
    if (!is_there(d.in, k)) add(*d.in[k], s_.operands[k].type);
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

void NodePrice::consider(const Assignment& a, double most, Strategy& best) {
  if (!sums_fit(a)) return;
  MoveCost moves;
  const double computed = work(a);
  const auto is_better = [&] { return moves.all() + computed < best.cost - 1e-9 && moves.moved <= most; };
  for (std::size_t k = 0; k < in_.size(); k++) {
    const Placed& p = operand(a, k);
    in_[k] = p.layout;
    if (!p.layout) return;
    if (!is_there(in_, k)) moves += p.cost;
    if (!is_better()) return;
  }
  if (left_out_ && std::ranges::find(*left_out_, in_) != left_out_->end()) return;
  for (std::size_t k = 0; k < out_.size(); k++) {
    const Placed& p = result(a, k);
    out_[k] = p.layout;
    if (!p.layout) return;
    moves += p.cost;
    if (!is_better()) return;
  }
  Strategy d{a, s_.pending, in_, out_};
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
  for (std::size_t k = 0; k < in_.size(); k++) d.in.push_back(operand(d.assignment, k).layout);
  for (std::size_t k = 0; k < out_.size(); k++) d.out.push_back(result(d.assignment, k).layout);
  return d;
}

}  // namespace shardarray

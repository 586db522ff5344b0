#include "compile/local_values.h"

#include <algorithm>

#include "base/at.h"
#include "compile/iterate.h"
#include "compile/received.h"
#include "compile/strict.h"
#include "layout/axes.h"

namespace shardarray {

int LocalValues::add(const Type& t, const Layout* l, int step, int origin) {
  const int part = static_cast<int>(p_.values.size());
  p_.values.push_back({t, l, step, -1});
  origin_.push_back(origin < 0 ? part : origin);
  copies_.emplace_back();
  at(copies_, origin_.back()).push_back(part);
  return part;
}

const std::vector<int>& LocalValues::copies_of(int part) const { return at(copies_, at(origin_, part)); }

int LocalValues::copy_at(int part, const Layout* to) const {
  for (int c : copies_of(part))
    if (at(p_.values, c).layout == to) return c;
  return -1;
}

int LocalValues::move(int part, const Layout* to, const MoveReason& why) {
  if (const int there = copy_at(part, to); there >= 0) return there;
  const Type type = at(p_.values, part).type;
  int source = part;
  if (at(p_.values, part).layout->order() == to->order() && to->unreduced().empty()) {
    const auto cost = [&](int c) { return reshards_.cost(at(p_.values, c).layout, to, type).all(); };
    for (int c : copies_of(part))
      if (at(p_.values, c).layout->order() == to->order() && cost(c) < cost(source)) source = c;
  }
  const Layout* from = at(p_.values, source).layout;
  std::vector<const Layout*> path{to};
  if (from->order() == to->order()) path = reshards_.of(from, to, type).layouts;
  else path = {whole_sums(from), whole_sums(to), to};
  const bool has_copies = copies_of(part).size() > 1;
  const std::size_t first = p_.transfers.size();
  for (const Layout* next : path) source = transfer_to(source, next, why, part);
  if (!has_copies) tell_gap(first, *from, *to, type);  // else another copy may have what a device lacks
  return source;
}

// Sets the gap between the transfers from number `first` on, which reshard one value, and the lower bound.
void LocalValues::tell_gap(std::size_t first, const Layout& from, const Layout& to, const Type& t) {
  if (first == p_.transfers.size()) return;
  Transfer all;
  for (std::size_t k = first; k < p_.transfers.size(); k++) add_received(all, p_.transfers[k]);
  const bool has_sums = !from.unreduced().empty() || !to.unreduced().empty();
  const std::int64_t least = from.order() == to.order() ? reshards_.least(&from, &to, t)
                             : has_sums                 ? 0
                                                        : all.bytes;  // foreign_cost() counts what is lacked
  if (least == 0) return;
  for (std::size_t k = first; k < p_.transfers.size(); k++)
    p_.transfers[k].gap = std::max(1.0, static_cast<double>(all.bytes) / static_cast<double>(least));
}

// The number that changes no sum: -0 for floats.
static std::uint64_t zero_bits(DType t) {
  constexpr std::uint64_t of_float = 0x8000'0000, both_parts = of_float << 32 | of_float;
  if (t == DType::complex64) return both_parts;
  if (t == DType::complex128) return std::uint64_t{1} << 63;  // the imaginary part is filled with 0
  return is_inexact(t) ? std::uint64_t{1} << (8 * itemsize(t) - 1) : 0;
}

// The sources for making summands: of the positions along the made sub-axes the first that holds a piece keeps it.
static Assembly first_summands(const LocalValue& from, const Layout& to) {
  const AxisList others = outside_of(made_axes(*from.layout, to), concatenated(from.layout->dims()));
  const int n = to.order()->size();
  Assembly a;
  a.bits = zero_bits(from.type.dtype);
  for (int p = 0; p < n; p++) {
    const Box held = tile_of(*from.layout, from.type.shape, p);
    const bool is_first =
        std::all_of(others.begin(), others.end(), [&](SubAxis x) { return coordinate(x, p, n) == 0; });
    const bool keeps = is_first && !held.empty();
    a.sources.emplace_back();
    if (keeps) a.sources.back().push_back({0, held, held.lo, Shape::filled(held.lo.size(), 1)});
    a.fills.push_back(!keeps || held != tile_of(to, from.type.shape, p));
  }
  return a;
}

int LocalValues::transfer_to(int part, const Layout* to, const MoveReason& why, int operand) {
  if (const int there = copy_at(part, to); there >= 0) return there;
  const LocalValue from = at(p_.values, part);
  Transfer t = reshards_.transfer(from.layout, to, from.type);
  t.reason = why.text();
  t.op = why.by.op ? why.by.op->name : in_.is_run ? "result of a step" : "output";
  t.where = why.where;
  LocalStep s{-1, -1, {part}, {}};
  if (t.kind != TransferKind::slice && t.kind != TransferKind::none) {
    if (!why.asked && why.by.modes->policy == Policy::strict)
      refuse_transfer(t, at(p_.values, operand), *to, in_.mesh, why);
    s.transfer = static_cast<int>(p_.transfers.size());
    p_.transfers.push_back(std::move(t));
  }
  if (from.layout->order() == to->order() && makes_summands(*from.layout, *to, from.type.shape))
    s.assembly = std::make_shared<const Assembly>(first_summands(from, *to));
  const int out = add(from.type, to, static_cast<int>(p_.steps.size()), at(origin_, part));
  s.out = {out};
  p_.steps.push_back(std::move(s));
  return out;
}

}  // namespace shardarray

#include "compile/halo.h"

#include <algorithm>

#include "base/at.h"
#include "base/ceil_div.h"
#include "base/sizes.h"
#include "compile/received.h"
#include "ops/record.h"

namespace shardarray {

Box held_box(const LocalValue& v, int p) {
  return v.windows ? at(*v.windows, p) : tile_of(*v.layout, v.type.shape, p);
}

Box source_box(const BoxSource& s) {
  Box b{s.in_lo, s.out.size};
  for (std::size_t d = 0; d < b.lo.size(); d++) {
    const std::int64_t last = s.step[d] * (s.out.size[d] - 1);
    b.lo[d] += std::min<std::int64_t>(last, 0);
    if (s.out.size[d] > 0) b.size[d] = std::abs(last) + 1;
  }
  return b;
}

IndexRun run_within(std::int64_t first, std::int64_t step, std::int64_t count, std::int64_t lo,
                    std::int64_t size) {
  if (step < 0) return run_within(-first, -step, count, 1 - lo - size, size);
  const std::int64_t begin = ceil_div(std::max<std::int64_t>(lo - first, 0), step),
                     end = ceil_div(std::max<std::int64_t>(lo + size - first, 0), step);
  return {begin, std::max<std::int64_t>(std::min(end, count) - begin, 0)};
}

BoxSource identity(const Box& b) { return {0, b, b.lo, Shape::filled(b.lo.size(), 1)}; }

std::int64_t missing(const BoxSource& s, const Box& held) {
  std::int64_t there = 1;
  for (std::size_t d = 0; d < s.in_lo.size(); d++)
    there *= run_within(s.in_lo[d], s.step[d], s.out.size[d], held.lo[d], held.size[d]).count;
  return s.out.elements() - there;
}

void Lacked::read(int p, const BoxSource& s, const Box& held) {
  const std::int64_t lacked = missing(s, held);
  each_[static_cast<std::size_t>(p)] += lacked;
  constexpr std::size_t most_compared = 32;
  if (std::exchange(position_, p) != p) read_.clear();
  if (!is_least_ || lacked == 0) return;
  const Box box = source_box(s);
  is_least_ = read_.size() < most_compared && std::ranges::none_of(read_, [&](const auto& r) {
                return r.first == s.operand && !intersect(r.second, box).empty();
              });
  read_.emplace_back(s.operand, box);
}

std::int64_t Lacked::most_bytes() const { return std::ranges::max(each_) * itemsize_; }

void Lacked::tell(Transfer& t) const {
  t.bytes = most_bytes();
  t.gap = is_least_ ? 1 : 0;
  std::vector<std::int64_t> bytes = each_;
  for (std::int64_t& n : bytes) n *= itemsize_;
  set_received(t, std::move(bytes));
}

Transfer halo_transfer(const FlatNode& n, const std::vector<const Layout*>& in, const Layout* out) {
  Transfer t;
  const bool rows = n.op->trait == Trait::row_list;
  t.kind = rows ? TransferKind::permute : TransferKind::exchange;
  t.shape = n.out_types[0].shape;
  t.dtype = n.out_types[0].dtype;
  t.reason = rows ? "rows change places" : "neighbours' elements are needed";
  for (const auto& dim : out->dims()) t.axes.insert(t.axes.end(), dim.begin(), dim.end());
  Lacked lacked(out->order()->size(), t.dtype);
  for (int p = 0; p < out->order()->size(); p++)
    for (const BoxSource& s : n.op->boxes(n.call(), tile_of(*out, t.shape, p))) {
      const auto k = static_cast<std::size_t>(s.operand);
      lacked.read(p, s, tile_of(*in[k], n.in_types[k].shape, p));
    }
  lacked.tell(t);
  return t;
}

std::vector<Window> windows_of(const FlatNode& n, const std::vector<const Layout*>& in,
                               const std::vector<const Layout*>& out) {
  const int positions = out[0]->order()->size();
  std::vector<std::vector<Box>> tiles, read;  // by position, then operand
  for (int p = 0; p < positions; p++) {
    const auto boxes = [p](const std::vector<const Layout*>& layouts, std::span<const Type> types) {
      std::vector<Box> b;
      for (std::size_t k = 0; k < types.size(); k++) b.push_back(tile_of(*layouts[k], types[k].shape, p));
      return b;
    };
    tiles.push_back(boxes(in, n.in_types));
    read.push_back(n.op->windows({n.call(), tiles.back(), boxes(out, n.out_types)}));
  }
  std::vector<Window> windows;
  for (std::size_t k = 0; k < in.size(); k++) {
    const auto stands_in_its_tile = [&](int p) {
      const Box &window = at(read, p)[k], &tile = at(tiles, p)[k];
      return window.empty() || (window.lo == tile.lo && intersect(window, tile) == window);
    };
    Window w{k, {}, {}};
    bool differs = false;
    w.transfer.shape = n.in_types[k].shape;
    w.transfer.dtype = n.in_types[k].dtype;
    w.transfer.reason = "neighbours' elements are needed";
    for (const AxisList& axes : in[k]->dims())
      w.transfer.axes.insert(w.transfer.axes.end(), axes.begin(), axes.end());
    Lacked lacked(positions, w.transfer.dtype);
    for (int p = 0; p < positions; p++) {
      differs |= !stands_in_its_tile(p);
      w.boxes.push_back(at(read, p)[k]);
      lacked.read(p, identity(w.boxes.back()), at(tiles, p)[k]);
    }
    lacked.tell(w.transfer);
    if (differs) windows.push_back(std::move(w));
  }
  return windows;
}

std::vector<std::int64_t> foreign_received(const Layout& from, const Layout& to, const Shape& shape,
                                           std::int64_t item) {
  std::vector<std::int64_t> each;
  for (int p = 0; p < to.order()->size(); p++) {
    const Box target = tile_of(to, shape, p);
    const int q = from.order()->position(to.order()->devices()[static_cast<std::size_t>(p)]);
    each.push_back((target.elements() - intersect(target, tile_of(from, shape, q)).elements()) * item);
  }
  return each;
}

TransferCost foreign_cost(const Layout& from, const Layout& to, const Shape& shape, std::int64_t item) {
  const std::int64_t bytes = std::ranges::max(foreign_received(from, to, shape, item));
  return {bytes == 0 ? TransferKind::slice : TransferKind::permute, {}, bytes};
}

}  // namespace shardarray

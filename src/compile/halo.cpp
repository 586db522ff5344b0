#include "compile/halo.h"

#include <algorithm>

#include "base/at.h"
#include "base/ceil_div.h"
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

std::int64_t missing(const BoxSource& s, const Box& held) {
  std::int64_t there = 1;
  for (std::size_t d = 0; d < s.in_lo.size(); d++)
    there *= run_within(s.in_lo[d], s.step[d], s.out.size[d], held.lo[d], held.size[d]).count;
  return s.out.elements() - there;
}

Transfer halo_transfer(const FlatNode& n, const std::vector<const Layout*>& in, const Layout* out) {
  Transfer t;
  const bool rows = n.op->trait == Trait::row_list;
  t.kind = rows ? TransferKind::permute : TransferKind::exchange;
  t.shape = n.out_types[0].shape;
  t.dtype = n.out_types[0].dtype;
  t.reason = rows ? "rows change places" : "neighbours' elements are needed";
  for (const auto& dim : out->dims()) t.axes.insert(t.axes.end(), dim.begin(), dim.end());
  const auto item = static_cast<std::int64_t>(itemsize(t.dtype));
  for (int p = 0; p < out->order()->size(); p++) {
    std::int64_t lacked = 0;
    for (const BoxSource& s : n.op->boxes(n.call(), tile_of(*out, t.shape, p))) {
      const auto k = static_cast<std::size_t>(s.operand);
      lacked += missing(s, tile_of(*in[k], n.in_types[k].shape, p));
    }
    t.bytes = std::max(t.bytes, lacked * item);
  }
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
    for (int p = 0; p < positions; p++) {
      differs |= !stands_in_its_tile(p);
      w.boxes.push_back(at(read, p)[k]);
      const std::int64_t lacked =
          w.boxes.back().elements() - intersect(w.boxes.back(), at(tiles, p)[k]).elements();
      w.transfer.bytes =
          std::max(w.transfer.bytes, lacked * static_cast<std::int64_t>(itemsize(w.transfer.dtype)));
    }
    if (differs) windows.push_back(std::move(w));
  }
  return windows;
}

TransferCost foreign_cost(const Layout& from, const Layout& to, const Shape& shape, std::int64_t item) {
  TransferCost c{TransferKind::permute, {}, 0};
  for (int p = 0; p < to.order()->size(); p++) {
    const Box target = tile_of(to, shape, p);
    const int q = from.order()->position(to.order()->devices()[static_cast<std::size_t>(p)]);
    c.bytes =
        std::max(c.bytes, (target.elements() - intersect(target, tile_of(from, shape, q)).elements()) * item);
  }
  if (c.bytes == 0) c.kind = TransferKind::slice;
  return c;
}

}  // namespace shardarray

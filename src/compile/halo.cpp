#include "compile/halo.h"

#include <algorithm>

#include "ops/record.h"

namespace shardarray {

Box source_box(const BoxSource& s) {
  Box b{s.in_lo, s.out.size};
  for (std::size_t d = 0; d < b.lo.size(); d++)
    if (s.step[d] < 0) b.lo[d] = s.in_lo[d] - (s.out.size[d] - 1);
  return b;
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
    std::int64_t missing = 0;
    for (const BoxSource& s : n.op->boxes(n.call(), tile_of(*out, t.shape, p))) {
      const auto k = static_cast<std::size_t>(s.operand);
      const Box needed = source_box(s);
      missing += needed.elements() - intersect(needed, tile_of(*in[k], n.in_types[k].shape, p)).elements();
    }
    t.bytes = std::max(t.bytes, missing * item);
  }
  return t;
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

#include "compile/scan.h"

#include <algorithm>

#include "base/at.h"
#include "base/ceil_div.h"
#include "base/sizes.h"
#include "compile/received.h"
#include "ops/record.h"

namespace shardarray {

std::size_t scanned_dim(const Rule& rule, std::size_t factor) {
  const std::vector<DimFactors>& dims = rule.operands[0];
  return static_cast<std::size_t>(std::find(dims.begin(), dims.end(), DimFactors{static_cast<int>(factor)}) -
                                  dims.begin());
}

Transfer carry_transfer(const FlatNode& n, const Layout& in, std::size_t dim) {
  Transfer t;
  t.kind = TransferKind::exchange;
  t.axes = in.dims()[dim];
  t.dtype = n.in_types[0].dtype;
  t.shape = n.in_types[0].shape;
  t.shape.erase(dim);
  t.reason = "the totals of the tiles in front are needed";
  Shape totals = tile_shape(in, n.in_types[0].shape);
  const std::int64_t tiles = ceil_div(n.in_types[0].shape[dim], std::max<std::int64_t>(totals[dim], 1));
  totals[dim] = std::max<std::int64_t>(tiles - 1, 0);
  t.bytes = bytes_of({totals, t.dtype, false});
  const bool reverse = n.attrs->step[0] < 0;
  std::vector<std::int64_t> received;
  for (int p = 0; p < in.order()->size(); p++) {
    Shape slice = tile_of(in, n.in_types[0].shape, p).size;
    const std::int64_t index = in.tile_index(static_cast<int>(dim), p);
    const std::int64_t in_front = slice[dim] == 0 ? 0 : reverse ? tiles - 1 - index : index;
    slice.erase(dim);
    received.push_back(mul_sizes(in_front, bytes_of({slice, t.dtype, false})));
  }
  set_received(t, std::move(received));
  return t;
}

const Layout* layout_of_totals(const FlatNode& n, const Layout& in, std::size_t dim) {
  std::vector<AxisList> dims = in.dims();
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(dim));
  return Layout::of(in.order(), std::move(dims), in.dims()[dim], n.attrs->reducer);
}

static const Op& combining_op(Reducer r) {
  switch (r) {
    case Reducer::prod: return op_mul;
    case Reducer::max: return op_max;
    case Reducer::min: return op_min;
    default: return op_add;
  }
}

ScanTail append_scan_tail(FlatGraph& g, int node, std::size_t dim) {
  const FlatNode& scan = at(g.nodes, node);
  const Type& whole = scan.in_types[0];
  Type slice{whole.shape, whole.dtype, false};
  slice.shape.erase(dim);
  const int carry = static_cast<int>(g.types.size());  // no node makes this value: an exchange does
  g.types.push_back(slice);
  g.producer.push_back(node);
  Attrs a;
  a.shape = whole.shape;
  const auto rank = std::ssize(whole.shape);
  for (std::int64_t d = 0; d < rank; d++)
    if (d != static_cast<std::int64_t>(dim)) a.dims.push_back(d - rank);
  const auto last = [&] { return static_cast<int>(g.nodes.size()) - 1; };
  ScanTail tail;
  const int everywhere = g.add(&op_broadcast, std::make_shared<const Attrs>(std::move(a)), {carry}, {whole},
                               scan.where, scan.modes);
  tail.spread = last();
  g.add(&combining_op(scan.attrs->reducer), nullptr, {everywhere, scan.first_out}, {whole}, scan.where,
        scan.modes);
  tail.combine = last();
  return tail;
}

}  // namespace shardarray

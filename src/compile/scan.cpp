#include "compile/scan.h"

#include <algorithm>

#include "base/ceil_div.h"

namespace shardarray {

std::optional<std::size_t> cut_scan(const Rule& rule, const Assignment& a) {
  for (std::size_t f = 0; f < a.size(); f++)
    if (rule.factors[f].role == Role::scan && !a[f].empty()) return f;
  return std::nullopt;
}

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
  return t;
}

}  // namespace shardarray

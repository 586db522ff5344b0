// A prefix scan along a sharded dimension: every device scans its tile; the totals of the tiles before it become its carry, which is
// combined with all its elements.
#pragma once
#include "compile/passes.h"

namespace shardarray {

/// The operand's dimension that is this factor.
std::size_t scanned_dim(const Rule& rule, std::size_t factor);
/// The transfer of the carries, for an operand in layout `in` that is scanned along `dim`: the busiest device receives the totals of all
/// tiles but its own. bytes is 0 if no device needs a carry.
Transfer carry_transfer(const FlatNode& n, const Layout& in, std::size_t dim);
/// Of the totals of all tiles: each device holds that of its tile, as a partial result.
const Layout* layout_of_totals(const FlatNode& n, const Layout& in, std::size_t dim);

/// Nodes appended to `g`: the carry of scan `node` broadcast along `dim`, and its combination with what was scanned.
struct ScanTail {
  int spread = -1, combine = -1;
};
ScanTail append_scan_tail(FlatGraph& g, int node, std::size_t dim);

}  // namespace shardarray

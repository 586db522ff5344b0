// A running reduction along a cut dimension: every device scans its tile, the last elements of the tiles in front become its carry,
// which is combined with all of its elements.
#pragma once
#include "compile/passes.h"

namespace shardarray {

/// The dimension of the operand that this factor is.
std::size_t scanned_dim(const Rule& rule, std::size_t factor);
/// What brings the carries, for an operand in layout `in`, of which dimension `dim` is scanned: the busiest device gets the totals of
/// all tiles but its own. bytes is 0 where no device needs a carry.
Transfer carry_transfer(const FlatNode& n, const Layout& in, std::size_t dim);
/// Of the totals of all tiles: each device has those of its tile, as a part of what they come to.
const Layout* layout_of_totals(const FlatNode& n, const Layout& in, std::size_t dim);

/// Nodes appended to `g`: the carry of the scan `node` along the whole dimension `dim`, and that combined with what was scanned.
struct ScanTail {
  int spread = -1, combine = -1;
};
ScanTail append_scan_tail(FlatGraph& g, int node, std::size_t dim);

}  // namespace shardarray

// A running reduction along a cut dimension: every device reduces its tile, the totals of the tiles in front become its carry, and
// its scan starts from there.
#pragma once
#include <optional>

#include "compile/passes.h"

namespace shardarray {

/// The factor along which the node scans, where it is cut.
std::optional<std::size_t> cut_scan(const Rule& rule, const Assignment& a);
/// The dimension of the operand that this factor is.
std::size_t scanned_dim(const Rule& rule, std::size_t factor);
/// What brings the carries, for an operand in layout `in`, of which dimension `dim` is scanned: the busiest device gets the totals of
/// all tiles but its own. bytes 0: nothing stands in front of anything.
Transfer carry_transfer(const FlatNode& n, const Layout& in, std::size_t dim);

}  // namespace shardarray

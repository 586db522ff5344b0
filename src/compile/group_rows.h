// Groups over rows: sums over their inner dimensions.
#pragma once
#include "compile/passes.h"

namespace shardarray {

/// A reduce that would join a group.
struct RowsOfGroup {
  const LocalValue &in,  ///< what it reduces
      &points,           ///< the group's domain
      &rows;             ///< its result
  const IndexMap& read;  ///< how the group reads the result
  const IndexMap& map;   ///< reduce_map() of it
};
/// Whether no row is sharded, and there are enough of them for all workers, or few points in all.
bool are_rows(const RowsOfGroup& r, const Target::Fusion& limits);

/// `m`: how a group reads the result of `n`. Returns the map from which operands of `n` are read: below a reduce it has the inner
/// dimensions as well.
IndexMap with_inner(IndexMap m, const FlatNode* n);
/// How a step reads operand k in a group with so many outer dimensions; a reduce reads along the inner ones.
IndexMap in_group_map(const LocalStep& s, std::size_t k, const Partition& p, const FlatGraph& g,
                      std::size_t outer);

}  // namespace shardarray

// Groups with rows: sums over their inner dimensions.
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
/// Each row has a tile's points, all of them, and there are rows enough for all workers, or little to do.
bool are_rows(const RowsOfGroup& r, const Target::Fusion& limits);

/// The map by which a group reads the result of `n`, as what the operands of `n` are read by: below a reduce the inner dimensions exist
/// as well.
IndexMap with_inner(IndexMap m, const FlatNode* n);
/// How a step reads operand k: a reduce along the inner dimensions of a group with so many outer ones.
IndexMap in_group_map(const LocalStep& s, std::size_t k, const Partition& p, const FlatGraph& g,
                      std::size_t outer);

}  // namespace shardarray

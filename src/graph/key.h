// The structure of graphs as words, equal exactly for equal graphs. Source lines are left out.
#pragma once
#include <span>

#include "base/key.h"
#include "graph/flat.h"

namespace shardarray {

/// The words of a node and, after them, of each of its outputs' types. Of its modes what compiling depends on; null for
/// a leaf, whose line does not matter.
void put_node(const Op* op, const Attrs* attrs, const Modes* modes, std::span<const int> in,
              std::size_t outputs, Words& words);
void put_value_type(const Type& t, Words& words);
/// The end of the words: which values enter and leave.
void put_ends(std::span<const int> inputs, std::span<const int> outputs, Words& words);
void put_structure(const FlatGraph& g, Words& words);
/// The same of a graph, with weak types and absent outputs. Leaves count as inputs in order.
Words structure(const Graph& g);

}  // namespace shardarray

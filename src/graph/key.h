// The structure of graphs as words, equal exactly for equal graphs. Source lines are ignored.
#pragma once
#include <span>

#include "base/key.h"
#include "graph/flat.h"

namespace shardarray {

/// Appends the words of a node; those of its output types follow. Includes the modes that affect compilation; null for leaves, whose line
/// does not matter.
void put_node(const Op* op, const Attrs* attrs, const Modes* modes, std::span<const int> in,
              std::size_t outputs, Words& words);
void put_value_type(const Type& t, Words& words);
/// Appends the end of a key: the graph's inputs and outputs.
void put_ends(std::span<const int> inputs, std::span<const int> outputs, Words& words);
void put_structure(const FlatGraph& g, Words& words);
/// The same for a graph, with weak types and absent outputs. Leaves count as inputs, in order.
Words structure(const Graph& g);

}  // namespace shardarray

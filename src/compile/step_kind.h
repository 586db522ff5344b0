// How fusion treats a step.
#pragma once
#include "compile/passes.h"

namespace shardarray {

enum class StepKind : std::uint8_t {
  loop,     ///< computed at every point of a loop's domain
  inlined,  ///< free to repeat in every user
  alias,    ///< another name for its operand's memory
  single    ///< runs alone
};
StepKind step_kind(const Partition& p, const FlatGraph& g, int step);

/// The node that a step computes; null: a transfer or a copy.
const FlatNode* node_of(const LocalStep& step, const FlatGraph& g);
/// A reshape that merges no dimensions: its result can be read from its operand by an index map.
bool is_split(const FlatNode& n);

/// Whether it is an elementwise step of little work that reads no more bytes than it makes.
bool is_cheap(const Partition& p, const FlatGraph& g, int step);

/// Gives every result its own memory: what is part of an input, or another result as well, is copied.
void copy_shared_outputs(Partition& p, const FlatGraph& g);
/// What is written before v is read in `memory` (-1: nobody reads it): that, and the values that v runs behind. `kinds`: per step.
std::vector<int> memories_before(const Partition& p, const std::vector<Storage>& storage,
                                 const std::vector<StepKind>& kinds, int v, int memory);

}  // namespace shardarray

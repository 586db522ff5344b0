// What fusion does with a step.
#pragma once
#include "compile/passes.h"

namespace shardarray {

enum class StepKind : std::uint8_t {
  loop,     ///< computed at every point of a loop's domain
  inlined,  ///< free to repeat in every user
  alias,    ///< another name for what its operand has in memory
  single    ///< runs by itself
};
StepKind step_kind(const Partition& p, const FlatGraph& g, int step);

/// The node that a step computes; null: a transfer or a copy.
const FlatNode* node_of(const LocalStep& step, const FlatGraph& g);
/// A reshape that merges no dimensions: its result can be read from its operand by an index map.
bool is_split(const FlatNode& n);

/// An elementwise step that is little work and reads no more bytes than it gives.
bool is_cheap(const Partition& p, const FlatGraph& g, int step);

/// Every result has memory of its own: what is part of an input, or another result as well, is copied.
void copy_shared_outputs(Partition& p, const FlatGraph& g);
/// What is written before somebody reads v in `memory` (-1: nobody does): that, and what v comes behind. `kinds`: of all steps.
std::vector<int> memories_before(const Partition& p, const std::vector<Storage>& storage,
                                 const std::vector<StepKind>& kinds, int v, int memory);

}  // namespace shardarray

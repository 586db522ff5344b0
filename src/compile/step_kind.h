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
/// A reshape that only adds or drops dimensions of size 1.
bool is_squeeze(const FlatNode& n);

/// Every result has memory of its own: what is part of an input, or another result as well, is copied.
void copy_shared_outputs(Partition& p, const FlatGraph& g);

}  // namespace shardarray

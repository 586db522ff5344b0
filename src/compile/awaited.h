// What a loop waits for: results of products and transfers, all of which are there before it begins.
#pragma once
#include "compile/step_kind.h"

namespace shardarray {

/// Large operands of a step that come from steps which run by themselves.
int awaited(const Partition& p, const std::vector<StepKind>& kinds, int step);
/// Whether a step that combines several values joins a loop that waits for so many of them. Else it is a loop of its own, and what it has
/// combined is one value: sums of many products are added up as they come.
bool may_await(const Partition& p, const std::vector<StepKind>& kinds, int step, int awaited);

}  // namespace shardarray

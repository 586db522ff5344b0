// Horizontal fusion: small loops with the same kernel run as one step of several items, if launching a step is expensive. Example: the
// updates of all small parameters of a model.
#pragma once
#include "compile/passes.h"

namespace shardarray {

/// Moves groups that are small loops to just before the next one of their kind, if nothing in between needs their results. `kernels`: of
/// the groups, which move with them.
void bring_together(Fusion& f, std::vector<GroupKernel>& kernels, const Partition& p, const FlatGraph& g,
                    const CompileInput& in);

/// Adds the items of the later step `next` to the loop of `step`; both are flattened to one dimension if possible. False if the kernels
/// differ, or an item touches what another one writes.
bool take_items(Step& step, const Step& next);

}  // namespace shardarray

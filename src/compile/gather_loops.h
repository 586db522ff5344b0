// Horizontal fusion: small loops of one kernel run as one step of several items, where a step costs much to begin. The updates of
// all small parameters of a model are such loops.
#pragma once
#include "compile/passes.h"

namespace shardarray {

/// Groups that are small loops come to stand in front of the next one of their kind, as far as nobody needs what they make before.
/// `kernels`: of the groups, which move with them.
void bring_together(Fusion& f, std::vector<GroupKernel>& kernels, const Partition& p, const FlatGraph& g,
                    const CompileInput& in);

/// Adds the items of `next`, which comes behind, to the loop of `step`; both become loops of one dimension where they can. False: it is
/// another kernel, or they touch what the others write.
bool take_items(Step& step, const Step& next);

}  // namespace shardarray

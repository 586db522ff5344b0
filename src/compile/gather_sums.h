// Small sums over the same devices become one transfer. Source: the combiners of all-reduces that XLA and PyTorch's DDP have.
#pragma once
#include "compile/passes.h"

namespace shardarray {

/// Small partial sums that are combined alike, over the same axes, come to stand side by side, where all of them are made and none is
/// needed yet, unless much memory would be held longer for that; their steps have one transfer of `p` then, whose bytes are those of
/// all, at most Links::together.
void gather_sums(Partition& p, Fusion& f, const FlatGraph& g, const CompileInput& in);

/// Adds the items of `next`, which comes behind, to the exchange of `step`. False: they are not of one transfer.
bool take_sums(Step& step, Step& next);

}  // namespace shardarray

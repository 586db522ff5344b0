// Combines small all-reduces over the same devices into one transfer. Source: the all-reduce combiners of XLA and PyTorch's DDP.
#pragma once
#include "compile/passes.h"

namespace shardarray {

/// Small partial sums that are combined alike, over the same axes, become neighbours, at a point where all of them exist and none is needed
/// yet, unless that holds much memory longer. Their steps then share one transfer of `p`, with the bytes of all, at most Links::together.
void gather_sums(Partition& p, Fusion& f, const FlatGraph& g, const CompileInput& in);

/// Adds the items of the later step `next` to the exchange of `step`. False if they do not share a transfer.
bool take_sums(Step& step, Step& next);

}  // namespace shardarray

// Composes steps that are assembled from boxes of each other's results.
#pragma once
#include "compile/passes.h"

namespace shardarray {

/// A chain of slices, pads, concatenations, ... and windows becomes one step that reads the start of the chain, if that moves no more
/// bytes. Loops read slices of one value whose tiles overlap from one window that contains them all. Returns whether anything changed: some
/// steps may be dead then.
bool compose_boxes(Partition& p, const FlatGraph& g);

}  // namespace shardarray

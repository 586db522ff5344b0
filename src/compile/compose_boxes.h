// Steps that are assembled from boxes of each other's results, as one.
#pragma once
#include "compile/passes.h"

namespace shardarray {

/// A chain of slices, pads, concatenations, .. and windows becomes one step where its end needs no more bytes so: that reads where the
/// chain begins. Slices of one value whose tiles overlap are read in loops from one window of it that has all of them. Whether
/// anything changed; then there may be steps that nobody needs.
bool compose_boxes(Partition& p, const FlatGraph& g);

}  // namespace shardarray

// A partition without the steps that nobody uses.
#pragma once
#include "compile/passes.h"

namespace shardarray {

/// Without what nobody uses: a constraint's copy may have been passed by for a nearer one.
Partition used_parts(Partition p, const FlatGraph& g);

}  // namespace shardarray

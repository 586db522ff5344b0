// Compares places of tiles.
#pragma once
#include "runtime/program.h"

namespace shardarray::cuda {

inline bool same_place(const Ref& a, const Ref& b) { return a.base == b.base && a.offset == b.offset; }

}  // namespace shardarray::cuda

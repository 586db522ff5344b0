// The pictures of visualize.h for arrays.
#pragma once
#include "shardarray/array.h"
#include "shardarray/visualize.h"

namespace shardarray {

/// Prints where the pieces of `x` lie (evaluates). Throws ShapeError unless its rank is 1 or 2.
inline void visualize_array_sharding(const Array& x, const VisualizeOptions& options = {}) {
  visualize_sharding(x.shape(), x.sharding(), options);
}

}  // namespace shardarray

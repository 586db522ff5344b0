// The pictures of visualize.h for arrays.
#pragma once
#include "shardarray/debug.h"
#include "shardarray/visualize.h"

namespace shardarray {

/// Prints where the pieces of `x` lie on standard output (evaluates; inside jit: once a compilation). Throws as
/// visualize_sharding(): ShapeError unless its rank is 1 or 2.
inline void visualize_array_sharding(const Array& x, const VisualizeOptions& options = {},
                                     Where w = Where::here()) {
  const Site site(w);
  inspect_array_sharding(
      x, [shape = x.shape(), options, w](const Sharding& s) { visualize_sharding(shape, s, options, w); }, w);
}

}  // namespace shardarray

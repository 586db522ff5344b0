// Comparing values (evaluates).
#pragma once
#include "shardarray/array.h"
#include "shardarray/export.h"

namespace shardarray {

struct CloseOptions {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;  ///< NaN is close to NaN
};
/// |a - b| <= atol + rtol |b| everywhere, after broadcasting; an infinity is close to its equal only. Whole numbers and bools
/// are compared in float64. Throws ShapeError when the shapes do not broadcast.
SHARDARRAY_API bool allclose(const Array& a, const Array& b, const CloseOptions& o = {},
                             Where w = Where::here());
/// Equal shapes and equal values (NaN equals nothing); dtypes may differ.
SHARDARRAY_API bool array_equal(const Array& a, const Array& b, Where w = Where::here());

}  // namespace shardarray

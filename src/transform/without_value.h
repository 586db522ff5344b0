// Arrays with a shape and dtype only, from shape_dtype_struct() and eval_shape().
#pragma once
#include "graph/op.h"
#include "shardarray/array.h"

namespace shardarray {

/// Throws ShapeError for sizes that no array has.
Array without_value(const Type& t, Where w);
inline bool is_without_value(const Array& a) { return a.node()->op->trait == Trait::without_value; }

}  // namespace shardarray

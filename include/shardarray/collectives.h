// Collectives: operations over the rows of a mapped axis, by its name. Inside vmap, pmap and shard_map.
#pragma once
#include <string>

#include "shardarray/array.h"

namespace shardarray {

/// The sum of x over the axis, the same in every row; bool sums as int32. The transpose is psum of the cotangents.
/// Throws TraceError for a name that is not in scope.
SHARDARRAY_API Array psum(const Array& x, const std::string& axis_name, Where w = Where::here());
/// The row's position along the axis: int32 scalar.
SHARDARRAY_API Array axis_index(const std::string& axis_name, Where w = Where::here());

}  // namespace shardarray

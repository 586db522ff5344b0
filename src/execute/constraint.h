// Sharding constraints: their checks, and their nodes in the graph.
#pragma once
#include <string>

#include "shardarray/array.h"

namespace shardarray::core {

/// Throws in the name of `function`, with the array's path: ShardingError for a sharding that does not fit, DeviceError for devices that
/// do not exist. `whose`: what the arrays are, arguments or results.
void check_fits(const Array& x, const Sharding& s, const std::string& path, const char* function,
                const char* whose = "arguments");
/// Throws ShardingError for dtypes that cannot be partial sums: bool and 16-bit floats.
void check_summands(const Type& t, const Sharding& s, const char* function, const std::string& path = "");
/// Records a sharding constraint on `x`.
Array constrain(const Array& x, const Sharding& s, Where w = {});

/// `x`, computed; if it is a partial sum, its sum.
Array added_up(const Array& x, const char* what);

}  // namespace shardarray::core

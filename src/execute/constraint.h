// Arrays that are to lie somewhere, in the graph.
#pragma once
#include <string>

#include "shardarray/array.h"

namespace shardarray::core {

/// Throws with the array's path, in the name of `function`: ShardingError for a sharding that does not fit, DeviceError for devices that
/// do not exist. `whose` are the arrays: arguments, results.
void check_fits(const Array& x, const Sharding& s, const std::string& path, const char* function,
                const char* whose = "arguments");
/// Throws ShardingError for a dtype whose values are not held as summands: bool and 16-bit floats.
void check_summands(const Type& t, const Sharding& s, const char* function, const std::string& path = "");
/// `x` with the constraint that it lies so, recorded.
Array constrain(const Array& x, const Sharding& s, Where w = {});

/// `x`; where devices hold summands of it, the sum, which is computed.
Array added_up(const Array& x, const char* what);

}  // namespace shardarray::core

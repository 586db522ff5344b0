// Arrays without values that lie somewhere.
#pragma once
#include "graph/value.h"
#include "shardarray/array.h"
#include "transform/without_value.h"

namespace shardarray {

/// `of` placed, without values. Throws ShardingError or DeviceError, in the name of `function`, where the sharding does not fit.
Array without_value(const Array& of, const Sharding& s, const std::string& path, const char* function,
                    Where w);

/// Where an array lies: the value of one that has values, which is computed; of one without, a value of no memory. Throws what reading
/// throws where nothing says it.
ValueRef placed(const Array& a, const char* what);
/// The same for explain(): one that is nowhere goes where the program runs.
ValueRef placed_somewhere(const Array& a, const char* what);

}  // namespace shardarray

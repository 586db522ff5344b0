// Arrays without values that lie somewhere.
#pragma once
#include "graph/value.h"
#include "shardarray/array.h"
#include "transform/without_value.h"

namespace shardarray {

/// One that lies so, which fits (core::check_fits).
Array without_value(const Type& t, const Sharding& s, Where w);

/// Where an array lies: the value of one that has values, which is computed; of one without, a value of no memory. Throws what reading
/// throws where nothing says it.
ValueRef placed(const Array& a, const char* what);
/// The same of one without values, for explain(): one that is nowhere goes where the program runs, all go to `home` if there is one.
ValueRef placed_somewhere(const Array& a, const DeviceOrder* home);

}  // namespace shardarray

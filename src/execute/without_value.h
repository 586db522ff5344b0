// Arrays with a sharding but without a value.
#pragma once
#include "graph/value.h"
#include "shardarray/array.h"
#include "transform/without_value.h"

namespace shardarray {

/// An array without a value, sharded as `s`, which must fit (core::check_fits).
Array without_value(const Type& t, const Sharding& s, Where w);

/// Where an array is placed: its value, which is computed; for an array without a value, a Value without memory. Throws as reading does if
/// there is neither.
ValueRef placed(const Array& a, const char* what);
/// The same of an array without a value, for explain(): without a placement it goes to the default device; all go to `home`, if given.
ValueRef placed_somewhere(const Array& a, const DeviceOrder* home);

}  // namespace shardarray

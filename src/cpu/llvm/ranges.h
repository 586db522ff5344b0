// What is known about the size of a float value: enough to convert it to an integer without looking.
#pragma once
#include <limits>

#include "runtime/kernel.h"

namespace shardarray::codegen {

struct Range {
  double lo = -std::numeric_limits<double>::infinity(), hi = std::numeric_limits<double>::infinity();
};
/// Between which bounds value v of a kernel lies wherever it is not NaN.
Range range_of(const Kernel& k, int v, int depth = 8);
/// Both bounds convert to int32.
bool fits_int32(const Range& r);

}  // namespace shardarray::codegen

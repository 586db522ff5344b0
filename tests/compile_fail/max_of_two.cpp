// max is a reduction.
// expect: of two arrays use maximum(a, b) or minimum(a, b)
#include "shardarray/jit.h"
#include "shardarray/ops.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& a, const sa::Array& b) { return sa::max(a, b); }

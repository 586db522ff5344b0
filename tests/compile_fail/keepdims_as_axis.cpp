// What is true or false is no axis.
// expect: say {.axis = 0, .keepdims = true} for keepdims
#include "shardarray/jit.h"
#include "shardarray/ops.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) { return sa::sum(x, true); }

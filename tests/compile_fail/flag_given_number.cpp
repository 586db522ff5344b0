// Of a list behind options with a flag the second number is none.
// expect: a list of axes is {.axis = {last, 1}}
#include "shardarray/jit.h"
#include "shardarray/ops.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) { return sa::cumsum(x, {0, 1}); }

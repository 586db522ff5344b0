// A list of axes has one type; its second number is no keepdims.
// expect: a list of axes is {.axis = {last, 1}}
#include "shardarray/jit.h"
#include "shardarray/ops.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x, long last) { return sa::sum(x, {last, 1}); }

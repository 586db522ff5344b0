// A function of arrays does nothing but give its result.
// options: -Werror
// expect: ignoring return value
#include "shardarray/jit.h"
#include "shardarray/ops.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) { sa::reshape(x, 2, 3); }

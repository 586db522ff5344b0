// Subscripts are known while a program is recorded; arrays are not.
// expect: where(mask, x, 0) for a mask
#include "shardarray/jit.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) { return x[x > 0]; }

// A bool would silently be 0 or 1.
// expect: x[true]: a bool is no index
#include "shardarray/jit.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x, bool flag) { return x[flag]; }

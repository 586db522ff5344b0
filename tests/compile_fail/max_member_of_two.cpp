// x.max() reduces x.
// expect: of two arrays use maximum(a, b)
#include "shardarray/jit.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x, const sa::Array& y) { return x.max(y); }

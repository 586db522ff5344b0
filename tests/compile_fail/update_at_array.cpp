// Subscripts are known while a program is recorded; arrays are not.
// expect: to set what a mask chooses write x = where(mask, v, x)
#include "shardarray/jit.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) { return x.at(x > 0).set(1); }

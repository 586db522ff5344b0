// A part of an array is a value of its own.
// expect: write x = x.at(i).add(v)
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(sa::Array x) { x[0] += 5.0; }

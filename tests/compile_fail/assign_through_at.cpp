// What at() gives is a temporary.
// expect: arrays are immutable; write x = x.at(i).set(v)
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(sa::Array x, const sa::Array& y) { x.at(0) = y.at(1); }

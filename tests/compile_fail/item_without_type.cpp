// What is read has a C++ type.
// expect: item: name the type that is read: x.item<float>()
#include "shardarray/jit.h"

namespace sa = shardarray;

float misuse(const sa::Array& x) { return x.item(); }

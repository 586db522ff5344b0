// What is read has a C++ type, also where more is made of it.
// expect: item: name the type that is read: x.item<float>()
#include "shardarray/jit.h"

namespace sa = shardarray;

double misuse(const sa::Array& x) { return 2 + x.item() * 2; }

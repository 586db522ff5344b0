// What is read has a C++ type.
// expect: to_vector: name the type that is read: x.to_vector<float>()
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) { x.to_vector(); }

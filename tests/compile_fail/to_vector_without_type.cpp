// What is read has a C++ type.
// expect: to_vector: name the type that is read: x.to_vector<float>()
#include "shardarray/jit.h"

namespace sa = shardarray;

std::vector<float> misuse(const sa::Array& x) { return x.to_vector(); }

// A tangent is a tree like its primal.
// expect: jvp: the tangents must have the type of the primals
#include "shardarray/grad.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  sa::jvp([](sa::Array a) { return a; }, x, std::tuple(x));
}

// A tangent is a tree like its primal.
// expect: jvp, hvp: the tangents must have the type of the primals
#include "shardarray/grad.h"

namespace sa = shardarray;

auto misuse(const sa::Array& x) {
  return sa::jvp([](sa::Array a) { return a; }, x, std::tuple(x));
}

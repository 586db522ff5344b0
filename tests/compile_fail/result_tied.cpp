// A call that has failed to compile may be assigned to anything.
// expect: the function cannot be called with these argument types
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(sa::Array x, sa::Array y) {
  std::tie(x, y) = sa::jit([](const sa::Array& a, const sa::Array& b) { return std::pair(a, b); })(x);
  y = x * 2;
}

// One primal for each argument.
// expect: the function cannot be called with these argument types
#include "shardarray/shardarray.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x, const sa::Array& v) {
  auto [y, tangent] = sa::jvp([](const sa::Array& a, const sa::Array& b) { return a * b; }, x, v);
  return y + tangent;
}

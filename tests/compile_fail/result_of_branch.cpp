// A branch that calls what cannot be called.
// expect: the function cannot be called with these argument types
#include "shardarray/shardarray.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) {
  const auto product = [](const auto& a, const auto& b) { return a * b; };
  return sa::cond(
      sa::sum(x) > 0, [&](const sa::Array& a) { return sa::jit(product)(a); },
      [](const sa::Array& a) { return a; }, x);
}

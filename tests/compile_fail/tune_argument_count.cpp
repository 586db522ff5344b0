// All arguments of the function, with options or without.
// expect: the function cannot be called with these argument types
#include "shardarray/shardarray.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  const auto best = sa::tune(sa::jit([](const sa::Array& a, const sa::Array& b) { return a + b; }), x);
  (void)best.choices();
}

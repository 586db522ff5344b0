// A loss that calls what cannot be called.
// expect: the function cannot be called with these argument types
#include "shardarray/shardarray.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) {
  const auto loss = [](const sa::Array& a) {
    auto y = sa::jit([](const auto& b, const auto& c) { return b * c; })(a);
    y = -y % 2;
    return y * y;
  };
  return sa::grad(loss)(x);
}

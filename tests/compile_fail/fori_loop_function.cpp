// The counter is an Array.
// expect: fori_loop: the function must take (Array i, carry) and return the carry
#include "shardarray/control_flow.h"

namespace sa = shardarray;

auto misuse(const sa::Array& x) {
  return sa::fori_loop(
      0, 3, [](int i, sa::Array c) { return c * i; }, x);
}

// A step of scan gives the carry and what it has to say.
// expect: scan: the function must return std::pair(carry, y)
#include "shardarray/control_flow.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  const auto last = sa::scan([](sa::Array c, sa::Array v) { return c + v; }, x, x);
}

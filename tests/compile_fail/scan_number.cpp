// A carry is made of arrays.
// expect: scan: the first carry is a number, which no step changes; write Array(x)
#include "shardarray/control_flow.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  const auto last = sa::scan([](float c, sa::Array v) { return std::pair(c, v); }, 0.0f, x);
}

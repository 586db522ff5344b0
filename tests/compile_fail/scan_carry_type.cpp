// The carry is one type.
// expect: scan: the function returns a carry of another type than it takes
#include "shardarray/control_flow.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  const auto last = sa::scan([](sa::Array c, sa::Array v) { return std::pair(std::pair(c, c), v); }, x, x);
}

// Both functions of cond give the same type.
// expect: cond: both functions must return the same type
#include "shardarray/conditional.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  (void)sa::cond(
      x, [](sa::Array v) { return v; }, [](sa::Array v) { return std::pair(v, v); }, x);
}

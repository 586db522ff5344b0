// A number stays as it is.
// expect: while_loop: the first carry is a number, which no step changes; write Array(x)
#include "shardarray/conditional.h"

namespace sa = shardarray;

auto misuse() {
  return sa::while_loop([](double x) { return x < 3; }, [](double x) { return x + 1; }, 0.0);
}

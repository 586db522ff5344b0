// jit makes a function and calls none.
// options: -Werror
// expect: ignoring return value
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse() {
  sa::jit([](const sa::Array& x) { return x + 1; });
}

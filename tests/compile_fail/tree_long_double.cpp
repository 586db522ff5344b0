// A number of which a key would hold a part.
// expect: a number of more than 64 bits cannot be a static value
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  sa::jit([](const sa::Array& t, long double) { return t; })(x, 1.0L);
}

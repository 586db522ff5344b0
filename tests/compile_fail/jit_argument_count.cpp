// The function takes two arguments, the call gives one.
// expect: the function cannot be called with these argument types
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  sa::jit([](sa::Array a, sa::Array b) { return a + b; })(x);
}

// A traced function has results, no side effects.
// expect: the function returns nothing; return the new arrays
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  sa::jit([](sa::Array) {})(x);
}

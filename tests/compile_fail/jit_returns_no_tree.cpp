// The result is a tree too.
// expect: references, data pointers and constants cannot be fields
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  sa::jit([](sa::Array a) { return std::pair(a, "name"); })(x);
}

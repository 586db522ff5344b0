// Pointers to data are no values.
// expect: references, data pointers and constants cannot be fields
#include "shardarray/jit.h"

namespace sa = shardarray;

struct Module {
  sa::Array w;
  const char* name;
};
void misuse(const Module& x) {
  sa::jit([](const auto& t) { return t; })(x);
}

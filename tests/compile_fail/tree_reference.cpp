// References are no values.
// expect: references, data pointers and constants cannot be fields
#include "shardarray/jit.h"

namespace sa = shardarray;

struct Module {
  sa::Array& w;
  int k;
};
void misuse(Module& m) {
  sa::jit([](const auto&) { return sa::Array(1.0); })(m);
}

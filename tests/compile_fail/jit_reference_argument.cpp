// The function gets copies: there is nothing to write back to.
// expect: take arguments by value or const&
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(sa::Array& x) {
  sa::jit([](sa::Array& a) { return a; })(x);
}

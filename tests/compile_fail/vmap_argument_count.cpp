// The function takes one argument, the call gives two.
// expect: the function cannot be called with these argument types
#include "shardarray/vmap.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  sa::vmap([](sa::Array a) { return a; })(x, x);
}

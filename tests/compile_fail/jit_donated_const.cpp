// Only what can be emptied can be given away.
// expect: donated: the argument is const
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  sa::jit([](sa::Array a) { return a; })(sa::donated(x));
}

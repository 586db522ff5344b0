// An update gives another array.
// options: -Werror
// expect: ignoring return value
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) { x.at(0).set(5.0); }

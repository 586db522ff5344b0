// A number that stays a number has no gradient.
// expect: grad: the argument is a number that the function takes as a number
#include "shardarray/grad.h"

namespace sa = shardarray;

void misuse() {
  sa::grad([](double x) { return sa::Array(x); })(2.0);
}

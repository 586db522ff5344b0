// Position 1 of a function of one argument.
// expect: grad: a position in argnums is beyond the last argument
#include "shardarray/grad.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  sa::grad<1>([](sa::Array a) { return a; })(x);
}

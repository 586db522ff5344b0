// There is an argument at the position.
// expect: jacfwd, jacrev, hessian: the position is beyond the last argument
#include "shardarray/jacobian.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  sa::jacfwd<1>([](sa::Array v) { return v; })(x);
}

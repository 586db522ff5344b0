// What is derived by is an array.
// expect: jacfwd, jacrev, hessian: the argument is a number that the function takes as a number; pass and take an Array
#include "shardarray/jacobian.h"

namespace sa = shardarray;

void misuse() {
  sa::jacfwd([](int k) { return sa::Array(2.0) * k; })(2);
}

// A derivative needs an Array.
// expect: grad: the function must return one Array (a scalar loss)
#include "shardarray/grad.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  sa::value_and_grad([](sa::Array) { return 1.0; })(x);
}

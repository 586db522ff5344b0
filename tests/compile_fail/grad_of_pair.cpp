// (loss, aux) needs has_aux.
// expect: grad: the function must return one Array (a scalar loss); for (loss, aux) say {.has_aux = true}
#include "shardarray/grad.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  sa::grad([](sa::Array a) { return std::pair(a, a); })(x);
}

// The arguments of the function.
// expect: the function cannot be called with these argument types
#include "shardarray/shardarray.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) {
  return sa::hessian([](const sa::Array& a, const sa::Array& b) { return sa::sum(a * b); })(x);
}

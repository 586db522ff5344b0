// One x for each argument.
// expect: the function cannot be called with these argument types
#include "shardarray/shardarray.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x, const sa::Array& v) {
  return sa::hvp([](const sa::Array& a, const sa::Array& b) { return sa::sum(a * b); }, x, v);
}

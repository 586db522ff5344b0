// A direction is a tree like x.
// expect: jvp, hvp: the tangents must have the type of the primals
#include "shardarray/shardarray.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) {
  return sa::hvp([](const sa::Array& a) { return sa::sum(a * a); }, x, std::tuple(x));
}

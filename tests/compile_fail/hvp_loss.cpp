// A Hessian times a vector is of a loss.
// expect: grad: the function must return one Array (a scalar loss)
#include "shardarray/shardarray.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x, const sa::Array& v) {
  return sa::hvp([](const sa::Array& a) { return std::pair(a, a); }, x, v);
}

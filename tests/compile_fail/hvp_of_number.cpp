// What a Hessian is of is an array.
// expect: grad: the argument is a number that the function takes as a number
#include "shardarray/shardarray.h"

namespace sa = shardarray;

sa::Array misuse() {
  return sa::hvp([](double a) { return sa::Array(a); }, 2.0, 1.0);
}

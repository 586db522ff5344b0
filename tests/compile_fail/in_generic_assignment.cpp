// In a function of any arguments, which compilers enter by way of jit.
// expect: x[i] = v would change a temporary and nothing else: arrays are immutable; write x = x.at(i).set(v)
#include "shardarray/jit.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) {
  return sa::jit([](auto m, auto v) {
    v[0] = 5.0;
    return m + v;
  })(x, x);
}

// In a step of any arguments.
// expect: auto [a, b] of one Array: take rows, x[0] and x[1]
#include "shardarray/control_flow.h"
#include "shardarray/jit.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) {
  return sa::scan(
             [](auto c, auto k) {
               auto [a, b] = k;
               return std::pair(c + a, c + b);
             },
             sa::Array(0.0), x)
      .first;
}

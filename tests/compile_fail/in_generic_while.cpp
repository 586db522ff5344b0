// In a body of any arguments.
// expect: x[i] = v would change a temporary and nothing else
#include "shardarray/conditional.h"
#include "shardarray/jit.h"
#include "shardarray/math.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) {
  return sa::while_loop([](auto v) { return sa::sum(v) > 0; },
                        [](auto v) {
                          v[0] = 5.0;
                          return v;
                        },
                        x);
}

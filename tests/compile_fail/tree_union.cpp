// Nobody can tell what a union holds.
// expect: this type is neither an Array, a container of trees, a struct of trees, nor a static value
#include "shardarray/jit.h"

namespace sa = shardarray;

union Number {
  explicit Number(int k) : k(k) {}
  int k;
  float x;
};

void misuse(Number n) {
  sa::jit([](Number m) { return sa::Array(2.0) * m.k; })(n);
}

// explain() takes the arguments of the call.
// expect: the function cannot be called with these argument types
#include "shardarray/shardarray.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  const sa::Explanation plan = sa::explain(sa::jit([](sa::Array a, sa::Array b) { return a + b; }), x);
}

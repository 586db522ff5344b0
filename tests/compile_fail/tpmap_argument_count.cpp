// A function under tpmap takes the arguments of the call.
// expect: the function cannot be called with these argument types
#include "shardarray/shardarray.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  sa::tpmap([](sa::Array a, sa::Array b) { return a + b; }, {.args = {sa::shard}})(x);
}

// The ladder of structured bindings ends at 40.
// expect: more than 40 fields in one struct
#include "shardarray/jit.h"

namespace sa = shardarray;

struct Module {
  sa::Array a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19;
  sa::Array b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20;
};
auto misuse(const Module& m) { return sa::tree_leaves(m); }

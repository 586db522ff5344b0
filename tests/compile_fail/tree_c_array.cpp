// C arrays swallow initialisers.
// expect: a C array cannot be a field of a tree; use std::array
#include "shardarray/jit.h"

namespace sa = shardarray;

struct Module {
  sa::Array w[3];
  int k;
};
auto misuse(const Module& m) { return sa::tree_leaves(m); }

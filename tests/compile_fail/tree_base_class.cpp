// Base classes cannot be reflected.
// expect: a struct with base classes cannot be taken apart
#include "shardarray/jit.h"

namespace sa = shardarray;

struct Layer {
  sa::Array w;
};
struct Module : Layer {
  int k;
};
auto misuse(const Module& m) { return sa::tree_leaves(m); }

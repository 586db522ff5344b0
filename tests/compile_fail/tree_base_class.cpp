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
void misuse(const Module& m) { sa::tree_leaves(m); }

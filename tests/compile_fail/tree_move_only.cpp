// A traced call copies its arguments.
// expect: every part must be copyable
#include "shardarray/jit.h"

namespace sa = shardarray;

struct Module {
  sa::Array w;
  std::unique_ptr<int> p;
};
auto misuse(const Module& m) { return sa::tree_paths(m); }

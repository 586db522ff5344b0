// A traced call copies its arguments.
// expect: every part must be copyable
#include "shardarray/jit.h"

namespace sa = shardarray;

struct Module {
  sa::Array w;
  std::unique_ptr<int> p;
};
void misuse(const Module& m) { sa::tree_paths(m); }

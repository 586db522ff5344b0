// What a shared pointer points to may be changed by others.
// expect: references, data pointers and constants cannot be fields
#include "shardarray/jit.h"

namespace sa = shardarray;

struct Module {
  sa::Array w;
  std::shared_ptr<sa::Array> shared;
};
auto misuse(const Module& m) { return sa::tree_paths(m); }

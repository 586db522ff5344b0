// A tuple of references is no tree.
// expect: references, data pointers and constants cannot be fields
#include "shardarray/jit.h"

namespace sa = shardarray;

auto misuse(sa::Array& a, sa::Array& b) { return sa::tree_leaves(std::tie(a, b)); }

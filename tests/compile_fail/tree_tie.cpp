// A tuple of references is no tree.
// expect: references, data pointers and constants cannot be fields
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(sa::Array& a, sa::Array& b) { sa::tree_leaves(std::tie(a, b)); }

// Keys become names.
// expect: a std::map in a tree needs std::string keys
#include "shardarray/jit.h"

namespace sa = shardarray;

auto misuse(const std::map<int, sa::Array>& m) { return sa::tree_leaves(m); }

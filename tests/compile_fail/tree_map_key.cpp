// Keys become names.
// expect: a std::map in a tree needs std::string keys
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(const std::map<int, sa::Array>& m) { sa::tree_leaves(m); }

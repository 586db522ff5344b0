// A leaf becomes a leaf.
// expect: tree_map: the function must take one Array of each tree and return an Array
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(const std::vector<sa::Array>& a) {
  (void)sa::tree_map([](const sa::Array& x) { return x.shape(); }, a);
}

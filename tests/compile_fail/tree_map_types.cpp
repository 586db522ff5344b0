// All trees are of one type.
// expect: tree_map: all trees must have the same type
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(const std::vector<sa::Array>& a, const std::array<sa::Array, 2>& b) {
  (void)sa::tree_map([](const sa::Array& x, const sa::Array&) { return x; }, a, b);
}

// tree_map gives another tree.
// options: -Werror
// expect: ignoring return value
#include "shardarray/jit.h"

namespace sa = shardarray;

void misuse(const std::vector<sa::Array>& tree) {
  sa::tree_map([](const sa::Array& x) { return x + 1; }, tree);
}

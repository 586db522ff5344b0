// The first argument points at a part.
// expect: tree_at: the first argument must return a reference into its argument
#include "shardarray/jit.h"

namespace sa = shardarray;

struct Layer {
  sa::Array w;
};
auto misuse(const Layer& l) {
  return sa::tree_at([](auto& t) { return t.w; }, l, sa::Array(1.0));
}

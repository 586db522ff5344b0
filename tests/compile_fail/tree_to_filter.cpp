// A model that is no tree, filtered.
// expect: shardarray tree: references, data pointers and constants cannot be fields of a tree
#include "shardarray/jit.h"

namespace sa = shardarray;

struct Model {
  sa::Array w;
  double* scale;
};
auto misuse(const Model& m) { return sa::filter(m, sa::is_array); }

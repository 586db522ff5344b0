// The compiler's notes name the field that is no part of a tree.
// expect: a C array cannot be a field of a tree
// note: FieldName{"layer"}
// clang note: 108, 97, 121, 101, 114
#include "shardarray/jit.h"

namespace sa = shardarray;

struct Layer {
  sa::Array bias;
  float weights[3];
};
struct Model {
  int width;
  Layer layer;
};

void misuse(Model m) {
  sa::jit([](Model x) { return x; })(m);
}

// MLP is a template also where all of its arguments have defaults: nn::MLP<>::init.
// expect: used without template arguments
// clang expect: MLP'
#include "shardarray/nn.h"

namespace sa = shardarray;

auto misuse(const sa::Array& key) { return sa::nn::MLP::init(1, 1, 8, 2, key); }

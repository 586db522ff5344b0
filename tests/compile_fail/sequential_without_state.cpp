// A chain with a layer that has a state is called with it.
// expect: nn::Sequential: a layer has a state, as BatchNorm; call the model with it
#include "shardarray/nn.h"

namespace sa = shardarray;

auto misuse(const sa::Array& x) { return sa::nn::sequential(sa::nn::BatchNorm::init(2, "batch"))(x); }

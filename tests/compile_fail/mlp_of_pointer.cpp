// The default value of a function pointer is no function.
// expect: write nn::MLP<nn::Function<sa::tanh>>
#include "shardarray/nn.h"

namespace sa = shardarray;

auto misuse(const sa::Array& key) {
  return sa::nn::MLP<sa::Array (*)(const sa::Array&)>::init(1, 1, 8, 2, key);
}

// A loss and a gradient that could not be had are no second error.
// expect: the function cannot be called with these argument types
#include "shardarray/shardarray.h"

namespace sa = shardarray;

struct Model {
  sa::Array weight, bias;
};
sa::Array misuse(Model m, const sa::Array& x) {
  const auto loss = [](const Model& n, const sa::Array& a, const sa::Array& b) {
    return sa::sum(n.weight * a - b);
  };
  auto [value, gradient] = sa::value_and_grad(loss)(m, x);
  m = gradient;
  return value + m.bias;
}

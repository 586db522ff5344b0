// Transforms of transforms: what the innermost function cannot take.
// expect: the function cannot be called with these argument types
#include "shardarray/shardarray.h"

namespace sa = shardarray;

struct Model {
  sa::Array weight, bias;
};
Model misuse(const Model& m, const sa::Array& x) {
  const auto loss = [](const Model& n, const sa::Array& a, const sa::Array& b) {
    return sa::sum(n.weight * a - b);
  };
  const auto [value, gradient] = sa::jit(sa::vmap(sa::value_and_grad(sa::checkpoint(loss))))(m, x);
  return sa::tree_map([](const sa::Array& a, const sa::Array& g) { return a - 0.1 * g; }, m, gradient);
}

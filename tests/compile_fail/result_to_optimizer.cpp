// The gradient of a loss that cannot be called so still has the type of its model.
// expect: the function cannot be called with these argument types
#include "shardarray/shardarray.h"

namespace sa = shardarray;

struct Model {
  sa::Array weight, bias;
};
Model misuse(Model m, const sa::Array& x) {
  const auto optimizer = sa::optim::adam(1e-3);
  const auto loss = [](const Model& n, const sa::Array& a, const sa::Array& b) {
    return sa::sum(n.weight * a - b);
  };
  const auto [value, gradient] = sa::value_and_grad(loss)(m, x);
  const auto [updates, state] = optimizer.update(gradient, optimizer.init(m), m);
  m.bias = m.bias - 0.1 * gradient.bias * value;
  return sa::apply_updates(m, updates);
}

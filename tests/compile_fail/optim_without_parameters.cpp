// Weights that decay are those of the parameters.
// expect: this transformation needs the parameters
#include "shardarray/shardarray.h"

namespace optim = shardarray::optim;

void misuse(const shardarray::Array& g) {
  const auto optimizer = optim::adamw(1e-3);
  auto [updates, next] = optimizer.update(g, optimizer.init(g));
}

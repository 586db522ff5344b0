// A model that is no tree, for an optimizer.
// expect: shardarray tree: a std::function or a lambda with captures has no identity to cache by
// note: Part = std::function<double(double)>; Owner = Model
// clang note: IsTree<std::function<double (double)>, Model,
#include <functional>

#include "shardarray/jit.h"
#include "shardarray/optim.h"

namespace sa = shardarray;

struct Model {
  sa::Array w;
  std::function<double(double)> activation;
};
auto misuse(const Model& m) { return sa::optim::adam(1e-3).init(m); }

// A model that is no tree, updated.
// expect: shardarray tree: a std::function or a lambda with captures has no identity to cache by
#include <functional>

#include "shardarray/filter_shard.h"

namespace sa = shardarray;

struct Model {
  sa::Array w;
  std::function<double(double)> activation;
};
Model misuse(const Model& m) { return sa::apply_updates(m, m); }

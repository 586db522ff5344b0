// A tree of shardings has the parts of the tree.
// expect: the tree of shardings needs one entry for each part of the tree
#include "shardarray/filter_shard.h"

namespace sa = shardarray;

auto misuse(const sa::Array& x, const sa::Sharding& s) {
  return sa::filter_shard(std::tuple(x, x, x), std::tuple(s, s));
}

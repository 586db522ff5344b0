// split(key) is one array of two keys.
// expect: write auto [a, b] = random::split<2>(key)
#include "shardarray/jit.h"
#include "shardarray/random.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& key) {
  auto [a, b] = sa::random::split(key);
  return a;
}

// split(key) is one array of two keys.
// expect: auto [a, b] of one Array: take rows, x[0] and x[1]; of a key: auto [a, b] = random::split<2>(key); a function gives two as std::pair(a, b)
#include "shardarray/jit.h"
#include "shardarray/random.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& key) {
  auto [a, b] = sa::random::split(key);
  return a;
}

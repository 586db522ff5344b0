// As any result.
// expect: the function cannot be called with these argument types
#include "shardarray/shardarray.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& xs) {
  auto rows = sa::map([](const sa::Array& a, const sa::Array& b) { return a + b; }, xs);
  return rows * 2;
}

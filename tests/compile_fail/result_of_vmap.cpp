// As a pair.
// expect: the function cannot be called with these argument types
#include "shardarray/shardarray.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) {
  const auto both = sa::vmap([](const sa::Array& a, const sa::Array& b) { return std::pair(a, b); })(x);
  return both.first + both.second;
}

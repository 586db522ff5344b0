// A pullback that was not made may be called.
// expect: the function cannot be called with these argument types
#include "shardarray/shardarray.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) {
  auto [y, pullback] = sa::vjp([](const sa::Array& a, const sa::Array& b) { return a * b; }, x);
  auto [da, db] = pullback(y);
  return da + db;
}

// The last carry and the sequences of a scan that did not compile.
// expect: scan: the function must return std::pair(carry, y)
#include "shardarray/shardarray.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x, const sa::Array& xs) {
  auto [last, all] = sa::scan([](const sa::Array& h, const sa::Array& e) { return h + e; }, x, xs);
  return last + sa::sum(all, 0);
}

// The function combines two trees to one of the same type.
// expect: associative_scan: the function must take two trees like the elements and return a third
#include "shardarray/associative_scan.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  static_cast<void>(sa::associative_scan([](sa::Array v) { return v; }, x));
}

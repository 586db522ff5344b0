// A condition is an Array: a bool would be read while the loop is traced.
// expect: while_loop: the condition must take the carry and return one Array, a scalar
#include "shardarray/conditional.h"

namespace sa = shardarray;

struct Flag {};

void misuse(const sa::Array& x) {
  static_cast<void>(sa::while_loop([](sa::Array) { return Flag(); }, [](sa::Array v) { return v; }, x));
}

// The body gives the next carry.
// expect: while_loop: the body must take the carry and return the next one
#include "shardarray/conditional.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  static_cast<void>(
      sa::while_loop([](sa::Array v) { return v; }, [](sa::Array v) { return std::pair(v, v); }, x));
}

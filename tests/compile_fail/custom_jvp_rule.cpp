// A rule gives the result and its tangent.
// expect: custom_jvp: the derivative must take (arguments, tangents)
#include "shardarray/custom_derivatives.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  sa::custom_jvp([](sa::Array v) { return v; }, [](sa::Array, sa::Array t) { return t; })(x);
}

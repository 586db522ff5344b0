// The backward function gives one cotangent for each argument.
// expect: custom_vjp: the backward function must take (residuals, cotangent of the result)
#include "shardarray/custom_derivatives.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  sa::custom_vjp([](sa::Array v, sa::Array w) { return v * w; },
                 [](sa::Array v, sa::Array w) { return std::pair(v * w, w); },
                 [](sa::Array, sa::Array g) { return g; })(x, x);
}

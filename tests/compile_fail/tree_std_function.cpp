// A std::function cannot be part of jit's key.
// expect: a std::function or a lambda with captures has no identity
#include "shardarray/jit.h"

namespace sa = shardarray;

struct Module {
  sa::Array w;
  std::function<double(double)> act;
};
void misuse(const Module& x) {
  sa::jit([](const auto& t) { return t; })(x);
}

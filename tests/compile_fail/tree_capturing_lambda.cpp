// A lambda with captures cannot be part of jit's key.
// expect: a std::function or a lambda with captures has no identity
#include "shardarray/jit.h"

namespace sa = shardarray;

template <class F> struct Module {
  sa::Array w;
  F act;
};
void misuse(const sa::Array& x, double scale) {
  auto act = [scale](const sa::Array& a) { return a * scale; };
  sa::jit([](const auto& t) { return t.w; })(Module<decltype(act)>{x, act});
}

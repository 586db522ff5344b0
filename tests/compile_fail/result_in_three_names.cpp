// It has as many names as the result of its function, which are used like any results.
// expect: the function cannot be called with these argument types
#include "shardarray/jit.h"

namespace sa = shardarray;

struct Model {
  sa::Array weight, bias;
};
sa::Array misuse(Model m, const sa::Array& x) {
  const auto step = [](const Model& n, const sa::Array& a, const sa::Array& b) {
    return std::tuple(n, a, b);
  };
  const auto [next, state, loss] = sa::jit(step)(m, x);
  m = next;
  return sa::jit([](const Model& n, const sa::Array& a) { return n.weight * a; })(m, state) + loss * 2;
}

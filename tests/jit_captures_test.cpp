// What jitted functions capture.
#include <doctest/doctest.h>

#include <functional>
#include <utility>

#include "shardarray/shardarray.h"

namespace jit_captures_test {

namespace sa = shardarray;
using sa::Array;

// `inner` is made once and reads what the function around it has just bound: a variable, or something that is computed of it.
TEST_CASE("jit: a function that captures values of the transform around it has each call's own") {
  using Fn = std::function<Array(const Array&)>;
  Array w;
  const Fn self = [](const Array&q) { return q; }, computed = [](const Array&q) { return q * 2 + 1; };
  for (const Fn& bound : {self, computed}) {
    const auto inner = sa::jit([&](const Array& x) { return x * w; });
    const Fn body = [&](const Array& q) {
      w = bound(q);
      return sa::sum(inner(sa::ones({2}) * 3) * q);
    };
    const Fn plain = [&](const Array& q) { return sa::sum(sa::ones({2}) * 3 * bound(q) * q); };
    const auto around = [](const Fn& f, int how) -> Fn {
      if (how == 0) return sa::grad(f);
      if (how == 1) return sa::jit(f);
      if (how == 2) return sa::jit(sa::grad(f));
      if (how == 3) return sa::grad([f](const Array& q) { return sa::sum(sa::grad(f)(q) * q); });
      if (how == 4) return [f](const Array& q) { return sa::vmap(f)(sa::stack({q, q + 1})); };
      return [f](const Array& q) {
        const auto step = [f](const Array& c, const Array& v) { return std::pair(c + f(v), f(v)); };
        return sa::scan(step, sa::sum(q) * 0, sa::stack({q, q + 1})).second;
      };
    };
    for (int how = 0; how < 6; how++) {
      CAPTURE(how);
      const Fn f = around(body, how), want = around(plain, how);
      for (const double start : {2.0, 5.0, 7.0}) {
        const Array q = sa::array({start, start + 1});
        CHECK(f(q).to_vector<double>() == want(q).to_vector<double>());
      }
      w = Array();
    }
  }
}

}  // namespace jit_captures_test

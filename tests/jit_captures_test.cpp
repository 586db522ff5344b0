// What jitted functions capture.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "messages.h"
#include "shardarray/shardarray.h"

namespace jit_captures_test {

namespace sa = shardarray;
using sa::Array;

// `inner` is created once and reads what the enclosing function has just bound: a variable, or something computed from it.
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

float sum_of(const Array& x) { return sa::sum(x).item<float>(); }
std::string message(const std::function<void()>& f) {
  return shardarray::testing::message_of<sa::TraceError>(f);
}

TEST_CASE("jit: what a function makes of host data is a part of its program") {
  int traces = 0;
  const auto f = sa::jit([&](const Array& x) {
    traces++;
    return x * sa::array({1.0, 2.0});
  });
  const auto called = [&](const auto& function) {
    const int before = traces;
    for (int k = 0; k < 3; k++) sa::eval(function(sa::ones({2}) * k));
    return traces - before;
  };
  CHECK(called(f) == 1);
  CHECK(sum_of(f(sa::array({3.0, 4.0}))) == 11);
  const auto gradient = sa::grad([&](const Array& x) { return sa::sum(f(x) * x); });
  CHECK(called(gradient) <= 1);
  CHECK(called(sa::jit(gradient)) <= 1);
  CHECK(called(sa::jit([&](const Array& x) { return f(x) + 1; })) <= 1);
  CHECK(gradient(sa::array({3.0, 4.0})).to_vector<double>() == std::vector<double>{6, 16});
}

TEST_CASE("jit: check finds a captured array that has other elements") {
  Array w = sa::array({1.0, 2.0});
  const auto f = sa::jit([&](Array x) { return x * w + sa::array({1.0, 1.0}); }, {.check = true});
  const Array x = sa::ones({2});
  CHECK(sum_of(f(x)) == 5);
  CHECK(sum_of(f(x)) == 5);  // the array that each trace makes has the same elements
  w = sa::array({0.5, 1.0}) * 2;
  CHECK(sum_of(f(x)) == 5);
  const std::string text =
      "jit: check: the captured array f32[2] has other elements than at the first trace, whose program is "
      "kept. Pass it as an argument.";
  w = sa::array({1.0, 2.5});
  CHECK(message([&] { sa::eval(f(x)); }) == text);
  w = sa::array({1.0, 2.0}) + 0;
  CHECK(sum_of(f(x)) == 5);
  w = sa::ones({2, 2});
  CHECK(message([&] { sa::eval(f(x)); }).find("another program") != std::string::npos);
}

}  // namespace jit_captures_test

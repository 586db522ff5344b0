// What the tests of the transforms share: reading values, catching messages, a small model.
#pragma once
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "everywhere.h"
#include "shardarray/shardarray.h"

namespace transforms_test {

namespace sa = shardarray;
using sa::Array;
using sa::Shape;
using sa::testing::everywhere;
using sa::testing::values;

using Values = std::vector<double>;

inline double at(const Array& x) { return everywhere(x).item<float>(); }
inline void check_near(const Array& got, const Values& want, double tolerance = 1e-5) {
  const Values v = values(got);
  REQUIRE(v.size() == want.size());
  for (std::size_t k = 0; k < v.size(); k++) CHECK(v[k] == doctest::Approx(want[k]).epsilon(tolerance));
}
template <class E, class F> std::string error(const F& f) {
  try {
    f();
  } catch (const E& e) { return e.text(); }
  return "no such error";
}
inline bool contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return true;
  MESSAGE(text);
  return false;
}

struct Layer {
  Array weight, bias;
};
struct Model {
  std::vector<Layer> layers;
  Array steps;  // int32: has no gradient
  double scale = 1;
};
inline Model model() {
  return {
      {{sa::array({{0.5, -1.0}, {2.0, 0.25}}), sa::array({0.1, -0.2})}, {sa::array({{1.5, -0.5}}), Array()}},
      3,
      2.0};
}

}  // namespace transforms_test

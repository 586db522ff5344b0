// What a row of the peers' bench runs. bench/peers/jax_*.py and torch_*.py hold the same rows under the same names: same inputs
// (the random numbers have JAX's bits), same dtypes, same donations.
#pragma once
#include <shardarray/shardarray.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace peers {

namespace sa = shardarray;

/// Groups of figures of one scale.
using Figures = std::vector<std::vector<double>>;

struct Work {
  std::string name;            ///< where a row has several
  std::function<void()> call;  ///< returns when the result is there
  std::function<Figures()>
      check;  ///< called once, after the first call: figures that all sides must agree on
};
using Works = std::vector<Work>;

/// Means that depend on the values and on their order, and the corners.
inline std::vector<double> digest(const sa::Array& x) {
  const std::vector<double> v = x.to_vector<double>();
  double magnitude = 0, total = 0, weighted = 0;
  for (std::size_t k = 0; k < v.size(); k++) {
    magnitude += std::abs(v[k]);
    total += v[k];
    weighted += v[k] * static_cast<double>(k % 7 + 1) / 4;
  }
  const auto n = static_cast<double>(v.size());
  return {magnitude / n, total / n, weighted / n, v.front(), v.back()};
}

/// f(inputs...), an array.
template <class F, class... A> Works result_of(F f, const A&... inputs) {
  (inputs.block_until_ready(), ...);
  return {{"", [=] { f(inputs...).block_until_ready(); }, [=] { return Figures{digest(f(inputs...))}; }}};
}

inline sa::Array normal(int seed, const sa::Shape& shape) {
  return sa::random::normal(sa::random::key(seed), shape);
}
/// What the row's products are made of is bfloat16.
inline bool half_products = false;
/// Arrays, or a tree of them, that products are made of.
template <class Tree> Tree in_precision(const Tree& x) {
  if (!half_products) return x;
  return sa::tree_map([](const sa::Array& a) { return a.astype(sa::bfloat16); }, x);
}
inline sa::Array matrix(int seed, const sa::Shape& shape) { return in_precision(normal(seed, shape)); }
inline sa::Array uniform(int seed, const sa::Shape& shape) {
  return sa::random::uniform(sa::random::key(seed), shape);
}

}  // namespace peers

// Loops that several benches measure.
#pragma once
#include <shardarray/shardarray.h>

#include <array>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

namespace bench {

/// Places an array.
using Place = std::function<shardarray::Array(const shardarray::Array&)>;

/// Adam steps on n parameters, with their state; a call issues the next step and returns the new parameters.
inline std::function<shardarray::Array()> adam(
    std::int64_t n, const Place& place = [](const shardarray::Array& x) { return x; }) {
  using shardarray::Array;
  const auto step = shardarray::jit([](Array w, Array m, Array v, Array g) {
    m = 0.1 * g + 0.9 * m;
    v = 0.001 * g * g + 0.999 * v;
    w = w - 3e-4 * (m * 1.1) / (shardarray::sqrt(v * 1.2) + 1e-8);
    return std::tuple(w, m, v);
  });
  auto state = std::make_shared<std::array<Array, 4>>();
  for (Array& a : *state) a = place(shardarray::full({n}, 0.25));
  return [step, state] {
    auto& s = *state;
    auto [w, m, v] = step(std::move(s[0]), std::move(s[1]), std::move(s[2]), s[3]);
    s = {w, m, v, s[3]};
    return s[0];
  };
}

inline shardarray::Array layer_norm(const shardarray::Array& x) {
  namespace sa = shardarray;
  const sa::Array d = x - sa::mean(x, {.axis = -1, .keepdims = true});
  return d * sa::rsqrt(sa::mean(d * d, {.axis = -1, .keepdims = true}) + 1e-5);
}

}  // namespace bench

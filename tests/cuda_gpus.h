// Programs over several GPUs, which every platform runs with the same bits.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "platform_programs.h"
#include "shardarray/shardarray.h"

namespace shardarray::gpus_test {

namespace sa = shardarray;
using platform_test::bits;
using platform_test::put;
using program_test::numbers;
using sa::Array;
using sa::P;

/// The platform's devices, the last first.
inline sa::Mesh backwards_on(const char* platform) {
  std::vector<sa::Device> all = sa::devices(platform);
  all.resize(8);
  std::reverse(all.begin(), all.end());
  return platform_test::mesh_of(std::move(all));
}
inline const auto& steps() {
  static const auto f = sa::jit([](const Array& w, const Array& xs) {
    const auto step = [](const Array& h, const Array& x) {
      const Array next = sa::tanh(sa::matmul(h, sa::transpose(h)) * 0.01f + x);
      return std::pair(next, sa::sum(next, 0));
    };
    return std::get<1>(sa::scan(step, w, xs));
  });
  return f;
}
inline platform_test::Bits looped(const sa::Mesh& mesh) {
  const Array w = put(numbers({8, 8}) * 0.1f, mesh, P("x", "y")),
              xs = put(numbers({6, 8, 8}) * 0.01f, mesh, P(sa::none, "y", "x"));
  platform_test::Bits all;
  for (int run = 0; run < 3; run++)
    for (const std::uint32_t b : bits(steps()(w, xs))) all.push_back(b);
  return all;
}
inline platform_test::Bits mapped(const char* platform) {
  std::vector<sa::Device> all = sa::devices(platform);
  all.resize(8);
  const auto f = sa::pmap(
      [](const Array& x) {
        const Array around = sa::ppermute(x, "i", {{0, 7}, {7, 3}, {3, 0}});
        return sa::psum(x, "i") + around + sa::all_gather(x, "i")[5];
      },
      {.axis_name = "i", .devices = all});
  const sa::default_device there(all[2]);
  return bits(f(numbers({8, 5, 3})));
}

inline bool near(const std::vector<platform_test::Bits>& a, const std::vector<platform_test::Bits>& b) {
  bool all = a.size() == b.size();
  for (std::size_t k = 0; all && k < a.size(); k++)
    for (std::size_t i = 0; i < a[k].size(); i++) {
      const float x = std::bit_cast<float>(a[k][i]), y = std::bit_cast<float>(b[k][i]);
      all = all && std::abs(x - y) <= 1e-5f * (1 + std::abs(y));
    }
  return all;
}
/// Programs over eight devices on both platforms.
inline void check_numbers() {
  using platform_test::everything;
  using platform_test::mesh_on;
  using platform_test::training;
  {
    const sa::reproducible on(true);
    for (const auto mesh : {mesh_on, backwards_on})
      for (int run = 0; run < 2; run++) {
        CHECK(everything(mesh("cuda")) == everything(mesh("cpu")));
        CHECK(training(mesh("cuda")) == training(mesh("cpu")));
        CHECK(looped(mesh("cuda")) == looped(mesh("cpu")));
      }
  }
  CHECK(everything(mesh_on("cuda")) == everything(mesh_on("cpu")));
  CHECK(near(training(mesh_on("cuda")), training(mesh_on("cpu"))));
  CHECK(mapped("cuda") == mapped("cpu"));
}

}  // namespace shardarray::gpus_test

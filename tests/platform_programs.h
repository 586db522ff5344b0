// Programs that every platform must run with the same bits, on a mesh x = 4, y = 2.
#pragma once
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "program_of.h"
#include "shardarray/shardarray.h"

namespace platform_test {

namespace sa = shardarray;
using program_test::numbers;
using sa::Array;
using sa::P;

/// Of the first eight devices.
inline sa::Mesh mesh_of(std::vector<sa::Device> devices) {
  devices.resize(8);
  return sa::Mesh({{4, 2}, std::move(devices)}, {"x", "y"});
}
inline Array put(const Array& x, const sa::Mesh& mesh, const P& spec) {
  return sa::device_put(x, sa::NamedSharding(mesh, spec));
}
inline sa::Mesh mesh_on(const char* platform) { return mesh_of(sa::devices(platform)); }
inline Array put(const Array& x, const char* platform, const P& spec) {
  return put(x, mesh_on(platform), spec);
}
using Bits = std::vector<std::uint32_t>;
inline Bits bits(const Array& x) {
  Bits all;
  for (const float v : x.to_vector<float>()) all.push_back(std::bit_cast<std::uint32_t>(v));
  return all;
}

struct Model {
  Array w1, b1, w2;
};
inline Array loss(const Model& m, const Array& x, const Array& y) {
  return sa::mean(sa::square(sa::matmul(sa::tanh(sa::matmul(x, m.w1) + m.b1), m.w2) - y));
}
using Read = Bits (*)(const Array&);
inline Model model_on(const sa::Mesh& mesh) {
  return {put(numbers({6, 10}) * 0.1f, mesh, P(sa::none, "y")), put(numbers({10}), mesh, P("y")),
          put(numbers({10, 3}) * 0.1f, mesh, P("y"))};
}
/// A jitted step (model, x, y) -> model.
inline auto training_step() {
  return sa::jit([](Model p, const Array& a, const Array& b) {
    const Model g = sa::grad([&](const Model& q) { return loss(q, a, b); })(p);
    return sa::tree_map([](const Array& v, const Array& d) { return v - d * 0.5f; }, p, g);
  });
}
/// Three steps of training with donation, from start to printed numbers.
inline std::vector<Bits> training(const sa::Mesh& mesh, Read read = bits) {
  Model m = model_on(mesh);
  const Array x = put(numbers({16, 6}) * 0.2f, mesh, P("x")), y = put(numbers({16, 3}), mesh, P("x"));
  const auto step = training_step();
  for (int k = 0; k < 3; k++) m = step(std::move(m), x, y);
  return {read(m.w1), read(m.b1), read(m.w2)};
}
/// A program that is called again and again.
inline Array looped(const Array& x) {
  return sa::fori_loop(
      0, 3, [&](const Array&, const Array& c) { return c * x + 1; }, x);
}
inline Bits loop(const sa::Mesh& mesh) { return bits(looped(put(numbers({13, 6}), mesh, P("x", "y")))); }
/// One of each kind of step but of loops: of a matrix and a vector of as many elements as it has rows, 13 or more.
inline std::vector<Array> results_of(const Array& x, const Array& v, const sa::Mesh& mesh) {
  return {x * 2 + 1,
          sa::sum(x, 0),
          sa::max(x, 1),
          sa::matmul(sa::transpose(x), x),
          sa::flip(x, 0),
          sa::sort(x, 0),
          sa::concatenate({x, x}, 1),
          sa::pad(x, {{1, 2}, {0, 1}}),
          x[sa::slice(2, 9)],
          sa::take(x, sa::array({3, 0, 12}, {3}, sa::int32), 0),
          sa::device_put(x, sa::NamedSharding(mesh, P("y"))),
          sa::roll(v, 3),
          sa::grad([](const Array& a) { return sa::sum(sa::exp(a) * a); })(v)};
}
inline std::vector<Bits> everything(const sa::Mesh& mesh, Read read = bits) {
  std::vector<Bits> all;
  for (const Array& r :
       results_of(put(numbers({13, 6}), mesh, P("x", "y")), put(numbers({13}), mesh, P("y")), mesh))
    all.push_back(read(r));
  return all;
}

}  // namespace platform_test

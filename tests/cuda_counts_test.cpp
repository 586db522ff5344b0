// Counts of driver calls (tests/cuda/): they must not grow with the number of logical devices or of a program's steps.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cuda_fake.h"
#include "execute/evaluate.h"
#include "platform_programs.h"
#include "scale.h"
#include "shardarray/shardarray.h"

namespace cuda_counts_test {

namespace sa = shardarray;
using namespace sa::testing;
using platform_test::bits;
using platform_test::put;
using program_test::numbers;
using sa::Array;
using sa::P;

namespace {

/// Of the first n devices.
sa::Mesh line_of(std::size_t n) {
  std::vector<sa::Device> devices = sa::devices("cuda");
  devices.resize(n);
  return sa::Mesh({{static_cast<std::int64_t>(n)}, std::move(devices)}, {"x"});
}
/// Launches of a run of `f`, whose kernels are ready.
template <class F> std::uint64_t launches_of_run(const F& f, const std::vector<Array>& operands) {
  for (int run = 0; run < 2; run++) sa::block_until_ready(f(operands));
  const std::uint64_t before = fake_control().launches();
  sa::block_until_ready(f(operands));
  return fake_control().launches() - before;
}

}  // namespace

TEST_CASE("cuda process: launches of fused loops" * doctest::skip()) {
  const auto plain = [](const std::vector<Array>& v) {
    return sa::where(v[0] > 0, sa::tanh(v[0] * v[1]) + sa::exp(-v[2]), v[1] * 2 - sa::rsqrt(v[2] * v[2] + 1));
  };
  const auto f = sa::jit(plain);
  for (const sa::Shape& shape : {sa::Shape{64, 6}, sa::Shape{13, 5}, sa::Shape{8}}) {
    std::vector<Array> operands;
    for (int k = 0; k < 3; k++) operands.push_back(numbers(shape) + static_cast<float>(k));
    for (const std::size_t devices : {std::size_t{1}, std::size_t{2}, std::size_t{8}}) {
      CAPTURE(devices);
      std::vector<Array> cut;
      for (const Array& x : operands) cut.push_back(put(x, line_of(devices), P("x")));
      CHECK(launches_of_run(f, cut) == 1);
    }
  }
}

namespace {

/// Arrays of two addresses each, in the same layout, of which a step takes one and gives it back.
struct Slots {
  using Choice = std::array<std::size_t, 3>;  // for each slot, which of its arrays
  std::array<std::array<Array, 2>, 3> arrays;

  explicit Slots(const sa::Mesh& mesh) {
    const sa::Shape shapes[] = {{64, 6}, {64}, {24, 3}};
    for (std::size_t s = 0; s < 3; s++)
      for (Array& x : arrays[s]) x = sa::block_until_ready(put(numbers(shapes[s]), mesh, P("x")));
  }
  static const void* place(const Array& x) { return sa::value_of(x)->buffers[0]->data; }
  /// The first reads the second, and none reads the third.
  template <class F> void step(const F& f, const Choice& c) {
    Array &a = arrays[0][c[0]], &b = arrays[1][c[1]], &z = arrays[2][c[2]];
    const std::array<const void*, 3> before = {place(a), place(b), place(z)};
    std::tie(a, b, z) = f(std::move(a), std::move(b), std::move(z));
    sa::block_until_ready(std::tuple(a, b, z));
    CHECK(std::array<const void*, 3>{place(a), place(b), place(z)} == before);
  }
};

}  // namespace

TEST_CASE("cuda process: launches that a replay changes" * doctest::skip()) {
  for (const std::size_t devices : {std::size_t{1}, std::size_t{8}}) {
    CAPTURE(devices);
    const auto f = sa::jit([](Array a, Array b, Array z) {
      return std::tuple(a * 0.5f + sa::expand_dims(b, 1), sa::tanh(b), sa::sin(z) + z);
    });
    Slots slots(line_of(devices));
    for (int run = 0; run < 2; run++) slots.step(f, {0, 0, 0});  // launch by launch
    std::deque<Slots::Choice> graphs;                            // the latest first
    std::mt19937 random(5);
    std::vector<std::uint64_t> sets, wanted;
    std::array<int, 4> seen{};  // steps that changed so many addresses
    for (int run = 0; run < 60; run++) {
      const Slots::Choice next = {random() % 2, random() % 2, random() % 2};
      std::uint64_t want = 0;
      if (const auto at = std::find(graphs.begin(), graphs.end(), next); at != graphs.end()) {
        graphs.erase(at);
      } else if (graphs.size() == 6) {  // the oldest graph gets the addresses of this run
        const Slots::Choice& old = graphs.back();
        const bool a = old[0] != next[0], b = old[1] != next[1], z = old[2] != next[2];
        want = (a || b ? 1u : 0u) + (b ? 1u : 0u) + (z ? 1u : 0u);
        seen[static_cast<std::size_t>(a) + static_cast<std::size_t>(b) + static_cast<std::size_t>(z)]++;
        graphs.pop_back();
      }
      graphs.push_front(next);
      const auto count = [](const char* call) { return fake_control().calls_of(call); };
      const std::uint64_t set = count("cudaGraphExecKernelNodeSetParams"),
                          launches = fake_control().launches(), replays = fake_control().graph_launches();
      slots.step(f, next);
      CHECK(fake_control().graph_launches() == replays + 1);
      CHECK(fake_control().launches() == launches + 3);
      sets.push_back(count("cudaGraphExecKernelNodeSetParams") - set);
      wanted.push_back(want);
    }
    CHECK(sets == wanted);
    for (const std::size_t changed : {std::size_t{1}, std::size_t{2}, std::size_t{3}})
      CHECK(seen[changed] > 0);
    CHECK(fake_control().calls_of("cudaGraphExecUpdate") == 0);
  }
}

// Updates of parameters of many shapes, which a loop makes for each: as many launches as there are kinds of loops, the CPU's bits.
namespace {

using Parameters = std::vector<Array>;
template <class G> void check_updates(const std::string& name, const G& optim, std::uint64_t most) {
  CAPTURE(name);
  const auto step = sa::jit([=](Parameters p, decltype(optim.init(p)) state, Parameters grads) {
    const auto [updates, next] = optim.update(grads, state, p);
    return std::pair(sa::apply_updates(p, updates), next);
  });
  const auto parameters = [&](const sa::Device& on) {
    Parameters p;
    for (std::int64_t k = 0; k < 40; k++)
      p.push_back(sa::device_put(numbers(k % 3 == 0   ? sa::Shape{5 + k, 3}
                                         : k % 3 == 1 ? sa::Shape{7 + k}
                                                      : sa::Shape{2, 3, 1 + k}) *
                                     0.25F,
                                 sa::SingleDeviceSharding(on)));
    return p;
  };
  const Parameters here = parameters(sa::devices("cpu")[0]), there = parameters(sa::devices("cuda")[0]);
  auto want = std::pair(here, optim.init(here)), got = std::pair(there, optim.init(there));
  std::uint64_t launches = 0;
  for (int k = 0; k < 4; k++) {
    want = step(want.first, want.second, here);
    const std::uint64_t before = fake_control().launches();
    got = step(got.first, got.second, there);
    sa::block_until_ready(got);
    launches = fake_control().launches() - before;
  }
  for (std::size_t k = 0; k < here.size(); k++) CHECK(bits(got.first[k]) == bits(want.first[k]));
  MESSAGE(name << ": launches of a step with 40 parameters: " << launches);
  CHECK(launches <= most);
}

}  // namespace

TEST_CASE("cuda process: launches of many small parameters" * doctest::skip()) {
  check_updates("sgd", sa::optim::sgd(0.1, {.momentum = 0.9}), 4);
  check_updates("adam", sa::optim::adam(0.1), 4);
  check_updates("adamw", sa::optim::adamw(0.1), 4);
  check_updates("lion", sa::optim::lion(0.1), 6);
}

TEST_CASE("cuda counts: a replay at other addresses changes the launches that use them, and no others") {
  on_fake("cuda process: launches that a replay changes", "SHARDARRAY_CODEGEN=off");
}
TEST_CASE("cuda counts: updates of many small parameters are few launches") {
  const std::string name = "cuda process: launches of many small parameters";
  on_fake(name, "SHARDARRAY_CODEGEN=off");
  if (full_scale()) on_fake(name, "SHARDARRAY_CODEGEN=always SHARDARRAY_FAKE_NVRTC=1 SHARDARRAY_CACHE_DIR=");
}
TEST_CASE("cuda counts: a fused loop is one launch on any number of logical devices") {
  const std::string name = "cuda process: launches of fused loops";
  on_fake(name, "SHARDARRAY_CODEGEN=off");
  if (full_scale()) on_fake(name, "SHARDARRAY_CODEGEN=always SHARDARRAY_FAKE_NVRTC=1 SHARDARRAY_CACHE_DIR=");
}

}  // namespace cuda_counts_test

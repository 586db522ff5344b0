// Recorded work that is never read does not pile up: pending work is bounded in depth, number and bytes.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <thread>

#include "execute/evaluate.h"
#include "graph/node.h"
#include "scale.h"
#include "shardarray/shardarray.h"

namespace laziness_test {

using namespace shardarray;
using shardarray::testing::full_scale;

// Megabytes of this process in memory.
double resident() {
  std::ifstream f("/proc/self/statm");
  double all = 0, pages = 0;
  f >> all >> pages;
  return pages * 4096 / 1e6;
}

std::size_t pending_below(const Array& a) {
  const std::lock_guard lock(graph_mutex());
  return topological({&a, 1}, [](const Node* n) { return !n->evaluated(); }).size();
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;  // memory is not given back at once
#else
constexpr bool sanitized = false;
#endif

TEST_CASE("laziness: a value that is updated a million times and never read stays small") {
  const int rounds = full_scale() ? 1'000'000 : 60'000;
  Array x = array({1.0f, -2.0f, 3.0f});
  std::vector<float> want{1, -2, 3};
  const double before = resident();
  std::size_t most = 0;
  for (int k = 0; k < rounds; k++) {
    x = x * 0.99f + 1;
    for (float& w : want) {
      const float scaled = w * 0.99f;
      w = scaled + 1;
    }
    if (k % 977 == 0) most = std::max(most, pending_below(x));
  }
  CHECK(most < 4096);
  if (!sanitized) CHECK(resident() - before < 100);
  CHECK(x.to_vector<float>() == want);
}

TEST_CASE("laziness: loops of any length of body are bounded, with values read in between and without") {
  for (int body : {1, 2, 3, 7, 50, 301}) {
    for (int read_every : {0, 13}) {
      CAPTURE(body);
      CAPTURE(read_every);
      Array x = array(std::vector<int>{5}), y = array(std::vector<int>{1});
      std::uint32_t a = 5, b = 1;
      for (int round = 0; round < 2000 / body + 3; round++) {
        for (int k = 0; k < body; k++) {
          x = x * 3 + y;
          y = y + k;
          a = a * 3 + b;
          b = b + static_cast<std::uint32_t>(k);
        }
        if (read_every && round % read_every == 0) CHECK(y[0].item<int>() == static_cast<int>(b));
        CHECK(pending_below(x) < 8192);
      }
      CHECK(x[0].item<int>() == static_cast<int>(a));
      CHECK(y[0].item<int>() == static_cast<int>(b));
    }
  }
}

TEST_CASE("laziness: wide graphs are bounded in number") {
  Array total = array(std::vector<int>{0});
  std::int64_t want = 0;
  for (int round = 0; round < 40; round++) {  // 1,000 nodes a round, not deep: a tree
    std::vector<Array> level;
    for (int k = 0; k < 512; k++) level.push_back(array(std::vector<int>{k + round}) * 2);
    while (level.size() > 1) {
      std::vector<Array> next;
      for (std::size_t k = 0; k < level.size(); k += 2) next.push_back(level[k] + level[k + 1]);
      level = next;
    }
    total = total + level[0];
    for (int k = 0; k < 512; k++) want += 2 * (k + round);
    CHECK(pending_below(total) < 4 * (1 << 14));
  }
  CHECK(total[0].item<int>() == want);
}

TEST_CASE("laziness: pending work does not hold many bytes of values that nobody else has") {
  constexpr std::int64_t n = 4 << 20;  // 16 MB
  Array sum = zeros({n});
  const double before = resident();
  double most = 0;
  for (int k = 0; k < 64; k++) {  // 1 GB in all
    sum = sum + array(std::vector<float>(n, 1.0f));
    most = std::max(most, resident() - before);
  }
  if (!sanitized) CHECK(most < 600);
  CHECK(sum[n - 1].item<float>() == 64);
}

TEST_CASE("laziness: what a trace or an open gradient records is left alone") {
  const auto long_chain = [](Array x) {
    for (int k = 0; k < 700; k++) x = x * 1.001f;
    return sum(x);
  };
  const Array x = array({1.0f, 2.0f});
  const double factor = [] {
    float f = 1;
    for (int k = 0; k < 700; k++) f *= 1.001f;
    return static_cast<double>(f);
  }();
  CHECK(grad(long_chain)(x).to_vector<float>()[0] == doctest::Approx(factor).epsilon(1e-4));
  CHECK(jit(long_chain)(x).item<float>() == doctest::Approx(3 * factor).epsilon(1e-4));
  CHECK(vmap(long_chain)(reshape(x, {2, 1})).to_vector<float>()[1] ==
        doctest::Approx(2 * factor).epsilon(1e-4));
}

TEST_CASE("laziness: effects look at the end of pending chains of any length") {
  Array before = array({1.0f});
  for (int k = 0; k < 300; k++) before = before + 1;  // chains are cut at this line
  for (int length = 100; length < 280; length++) {
    CAPTURE(length);
    Array x = array({0.0f});
    for (int k = 0; k < length; k++) x = x + 1;
    if (length % 20 == 0) before = before[0].item<float>() + before;
    int seen = 0;
    inspect_array_sharding(x * 1, [&](const Sharding&) { seen++; });
    debug::callback(
        [&](const HostValues& v) { seen += v.arrays[0].item<float>() == static_cast<float>(length); },
        {x[0]});
    CHECK(seen == 2);
  }
}

TEST_CASE("laziness: transforms that replay long functions do not store what lies between") {
  constexpr int steps = 300;
  const auto chain = [](Array r) {
    for (int k = 0; k < steps; k++) r = r * 1.001f;
    return r;
  };
  const Array x = ones({16, 1 << 14});  // 1 MB
  eval(x);
  const double before = resident();
  double most = 0;
  const Array y = vmap(chain)(x);
  most = std::max(most, resident() - before);
  eval(y);
  most = std::max(most, resident() - before);
  const Array g = grad([&](const Array& v) { return sum(chain(v)); })(x);
  most = std::max(most, resident() - before);
  CHECK(g[0][0].item<float>() == doctest::Approx(std::pow(1.001, steps)).epsilon(1e-3));
  most = std::max(most, resident() - before);
  if (!sanitized) CHECK(most < 150);
}

TEST_CASE("laziness: values that are read inside a gradient let go of theirs when it ends") {
  Array h = zeros({1 << 16}), w = full({1 << 16}, 0.1f);  // 256 KB
  double before = 0;
  for (int k = 0; k < 120; k++) {
    if (k == 40) before = resident();
    const auto step = value_and_grad(
        [&](const Array& v) {
          const Array next = shardarray::tanh(h * 0.5f + v);
          CHECK(max(next).item<float>() < 1);  // reads inside
          return std::pair(mean(square(next)), next);
        },
        {.has_aux = true});
    const auto [value, gradient] = step(w);
    h = value.second;
    w = w - 0.1f * gradient;
    eval(std::tuple(w, h));
  }
  if (!sanitized) CHECK(resident() - before < 20);
}

TEST_CASE("laziness: threads that build long chains do not wait for one another") {
  std::vector<std::thread> threads;
  std::vector<float> results(4);
  for (std::size_t t = 0; t < results.size(); t++)
    threads.emplace_back([&results, t] {
      Array x = array({static_cast<float>(t)});
      for (int k = 0; k < 3000; k++) x = x + 1;
      results[t] = x[0].item<float>();
    });
  for (std::thread& t : threads) t.join();
  for (std::size_t t = 0; t < results.size(); t++) CHECK(results[t] == 3000 + static_cast<float>(t));
}

}  // namespace laziness_test

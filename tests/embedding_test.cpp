// The library inside other programs: computing while threads end, and no growth as things come and go.
#include <doctest/doctest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "layout/layout.h"
#include "layout/spelling.h"
#include "scale.h"
#include "shardarray/shardarray.h"

namespace embedding_test {

namespace sa = shardarray;
using sa::Array;
using sa::P;
using sa::testing::full_scale;

namespace {

struct AtEnd {
  std::function<void()> f;
  ~AtEnd() {
    if (f) f();
  }
};

// Something of everything that keeps state in a thread; true when all of it is right.
bool computes(int seed) {
  const auto n = static_cast<double>(seed);
  const sa::Mesh mesh({{8}, sa::devices()}, {"x"});
  const Array x = sa::arange(0, 64).astype(sa::float32) + n;
  const Array cut = sa::device_put(x, sa::NamedSharding(mesh, P("x")));
  double sum = 0, squares = 0;
  for (int k = 0; k < 64; k++) sum += k + n, squares += (k + n) * (k + n);
  const auto square_sum = sa::jit([](Array a) { return sa::sum(a * a); });
  bool right = sa::sum(cut).item<float>() == static_cast<float>(sum);
  right &= square_sum(cut).item<float>() == static_cast<float>(squares);
  right &= square_sum(std::move(cut) + 0).item<float>() == static_cast<float>(squares);
  right &= sa::grad(square_sum)(x).to_vector<float>()[1] == static_cast<float>(2 * (1 + n));
  const auto mean = sa::pmap([](Array a) { return sa::psum(a, "i"); }, {.axis_name = "i"});
  right &= mean(sa::ones({8, 2})).to_vector<float>() == std::vector<float>(16, 8.0f);
  const auto large = sa::matmul(sa::ones({80, 40}), sa::ones({40, 600}));  // has operands packed
  right &= sa::all(large == 40.0f).item<bool>();
  const sa::default_device there(sa::devices()[3]);
  right &= sa::matmul(sa::ones({3, 4}), sa::ones({4, 2})).to_vector<float>() == std::vector<float>(6, 4.0f);
  return right;
}

// A mesh over all eight devices in the k-th order.
std::vector<sa::Device> order(int k) {
  std::vector<sa::Device> devices = sa::devices();
  for (std::size_t left = devices.size(); left > 1; left--) {
    const auto at = static_cast<std::size_t>(k) % left;
    k /= static_cast<int>(left);
    std::swap(devices[left - 1], devices[at]);
  }
  return devices;
}
sa::Mesh mesh(int k) { return sa::Mesh({{4, 2}, order(k)}, {"x", "y"}); }

// The growth of the heap when things come and go `count` times, after as many rounds that fill bounded caches. A table that doubles
// does so in one of two rounds only; a leak grows in both.
template <class F> std::ptrdiff_t growth(int count, const F& come_and_go) {
  const auto round = [&](int from) {
    const auto before = mallinfo2().uordblks;
    for (int k = from; k < from + count; k++) come_and_go(k);
    return static_cast<std::ptrdiff_t>(mallinfo2().uordblks) - static_cast<std::ptrdiff_t>(before);
  };
  round(0);
  const std::ptrdiff_t first = round(count), second = round(2 * count);
  return std::min(first, second);
}

}  // namespace

TEST_CASE("embedding: a thread computes in destructors of its thread_local objects") {
  for (const bool used_before : {false, true}) {
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int k = 0; k < 3; k++)
      threads.emplace_back([&, k] {
        thread_local AtEnd early;  // made before the library was used here
        early.f = [&right, k] { right += computes(k); };
        if (used_before) right += computes(10 + k);
        thread_local AtEnd late;
        late.f = [&right, k] { right += computes(20 + k); };
      });
    for (auto& t : threads) t.join();
    CHECK(right == (used_before ? 9 : 6));
  }
}

TEST_CASE("embedding: handles of a thread that is gone are good") {
  Array kept;
  std::optional<sa::Jitted<Array (*)(Array)>> step;
  std::thread([&] {
    step.emplace(sa::jit(+[](Array a) { return a * 2 + 1; }));
    kept = (*step)(sa::arange(0, 8).astype(sa::float32));
  }).join();
  CHECK((*step)(kept).to_vector<float>() == std::vector<float>{3, 7, 11, 15, 19, 23, 27, 31});
}

TEST_CASE("growth: orders of devices, their layouts and spellings") {
  REQUIRE(sa::device_count() == 8);
  const auto orders_before = sa::DeviceOrder::count();
  const auto grown = growth(10'000, [](int k) {
    const sa::Mesh m = mesh(k);
    const sa::Sharding s = sa::NamedSharding(m, P("x", "y"));
    REQUIRE(s.shard_shape({8, 8}) == sa::Shape{2, 4});
    REQUIRE(s.is_fully_replicated() == false);
    REQUIRE(sa::layout_of(sa::spell(sa::layout_of(s, 2)), 2) == sa::layout_of(s, 2));
    REQUIRE(sa::detail::spelling(m).text != sa::detail::spelling(s).text);
  });
  CHECK(grown < 200'000);
  CHECK(sa::DeviceOrder::count() < orders_before + 1000);
}

TEST_CASE("growth: an order lives as long as one array, layout or program of it") {
  const sa::Layout* layout = nullptr;
  std::optional<sa::Sharding> s = sa::NamedSharding(mesh(4321), P(sa::axes("x", "y")));
  layout = sa::layout_of(*s, 1);
  const Array x = sa::device_put(sa::arange(0, 16), *s);
  const Array y = x * 2;
  const auto held = y.to_vector<int>();
  s.reset();
  for (int k = 0; k < 3000; k++) sa::layout_of(sa::Sharding(sa::NamedSharding(mesh(k), P("x"))), 1);
  CHECK(sa::layout_of(sa::Sharding(sa::NamedSharding(mesh(4321), P(sa::axes("x", "y")))), 1) == layout);
  CHECK((y + x).to_vector<int>()[15] == 45);
  CHECK(y.to_vector<int>() == held);
}

TEST_CASE("growth: values on an order outlive the sharding and the program that made them") {
  // Programs beside them push theirs out of the cache; results keep the layout that they have.
  std::vector<Array> results;
  const int count = full_scale() ? 2000 : 40;
  for (int k = 0; k < count; k++) {
    const sa::Sharding s = sa::NamedSharding(mesh(37 * k), P("x", "y"));
    const auto f = sa::jit([s](Array a) { return sa::filter_shard(a + 1, s); });
    const Array a = f(sa::arange(0, 64).reshape({8, 8}));
    results.push_back(sa::jit([](Array b) { return sa::sum(b, 1); })(a));
    results.push_back(sa::transpose(a));
  }
  for (int k = 0; k < 3000; k++) sa::layout_of(sa::Sharding(sa::NamedSharding(mesh(k), P("x"))), 1);
  for (int k = 0; k < count; k++) {
    const auto sums = results[2 * static_cast<std::size_t>(k)].to_vector<int>();
    const auto turned = (results[2 * static_cast<std::size_t>(k) + 1] + 0).to_vector<int>();
    for (int row = 0; row < 8; row++) {
      REQUIRE(sums[static_cast<std::size_t>(row)] == 8 * (8 * row) + 28 + 8);
      for (int column = 0; column < 8; column++)
        REQUIRE(turned[static_cast<std::size_t>(8 * column + row)] == 8 * row + column + 1);
    }
  }
}

TEST_CASE("growth: static values and the texts of meshes among them") {
  const Array x = sa::ones({4});
  const auto scaled = sa::jit([](Array a, int by) { return a * by; });
  const auto grown = growth(full_scale() ? 10'000 : 2000, [&](int k) { scaled(x, k); });
  CHECK(grown < 50'000);
  CHECK(scaled(x, 77).to_vector<float>() == std::vector<float>(4, 77.0f));
  CHECK(scaled.cache_size() <= 64);

  // An equal mesh that is made anew is the same static value.
  const auto placed = sa::jit([](Array a, sa::Mesh m) { return a * static_cast<int>(m.size()); });
  for (int k = 0; k < 200; k++) {
    CHECK(placed(x, mesh(5)).to_vector<float>()[0] == 8);
    sa::detail::spelling(mesh(k + 10));
  }
  CHECK(placed.traces() == 1);
}

TEST_CASE("growth: jit functions that come and go, each with a name of its own") {
  const Array x = sa::ones({4});
  const int count = 4000;  // names are kept, up to 16,384 in a process
  const auto grown = growth(count, [&](int k) {
    const auto f = sa::jit([](Array a) { return a + 1; }, {.name = "function " + std::to_string(k)});
    f(x);
  });
  CHECK(grown < 150 * count);
}

}  // namespace embedding_test

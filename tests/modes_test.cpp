// Policy, reproducible, default device and PRNG apply to the lines in their scope; pullbacks are values; donation and the time of
// evaluation change no result.
#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "program_of.h"
#include "shardarray/shardarray.h"
#include "with_codegen.h"

namespace modes_test {

using namespace shardarray;
using program_test::on_xy;
using shardarray::testing::everywhere;

Array mixed(const Shape& shape, int seed = 0) {
  std::vector<float> v(static_cast<std::size_t>(num_elements(shape)));
  for (std::size_t k = 0; k < v.size(); k++)
    v[k] = static_cast<float>((k * 7919 + static_cast<std::size_t>(seed) * 31) % 1009) / 97 - 5;
  return array(v, shape);
}
std::vector<float> bits(const Array& x) { return everywhere(x).to_vector<float>(); }

struct Program {
  const char* name;
  std::function<Array(const Array&)> f;
};
const std::vector<Program>& sums() {
  static const std::vector<Program> all = {
      {"sum", [](const Array& x) { return sum(x); }},
      {"mean of rows", [](const Array& x) { return mean(x, 1); }},
      {"product", [](const Array& x) { return matmul(x, transpose(x)); }},
      {"gradient",
       [](const Array& x) {
         return grad([](const Array& y) { return sum(shardarray::tanh(matmul(y, transpose(y)))); })(x);
       }},
      {"vmap", [](const Array& x) { return vmap([](const Array& row) { return sum(row * row); })(x); }},
      {"jit", [](const Array& x) { return jit([](const Array& y) { return sum(y * y); })(x); }},
      {"prod", [](const Array& x) { return prod(x / 4, 0); }},
  };
  return all;
}
std::vector<Sharding> shardings() {
  return {on_xy(P("x")), on_xy(P("x", "y")), on_xy(P(none, "y")), on_xy(P("y"))};
}

TEST_CASE("modes: reproducible holds where the line stands, not where the value is read") {
  const Array x = mixed({1016, 24});
  for (const Program& p : sums()) {
    CAPTURE(p.name);
    std::vector<float> want;
    {
      const reproducible on(true);
      want = bits(p.f(device_put(x, SingleDeviceSharding(devices()[0]))));
    }
    for (const Sharding& s : shardings()) {
      Array lazy;
      {
        const reproducible on(true);
        lazy = p.f(device_put(x, s));
      }
      CHECK(bits(lazy) == want);  // read outside
    }
    // and the other way round: recorded outside, read inside, it is what it is outside
    for (const Sharding& s : shardings()) {
      const std::vector<float> outside = bits(p.f(device_put(x, s)));
      Array lazy = p.f(device_put(x, s));
      const reproducible on(true);
      CHECK(bits(lazy) == outside);
    }
  }
}

TEST_CASE("modes: one program may have lines of both modes, eager and under jit") {
  const Array x = mixed({1016, 24});
  const auto both = [](const Array& y) {
    Array fixed;
    {
      const reproducible on(true);
      fixed = sum(y, 0);
    }
    return concatenate({fixed, sum(y, 0)});
  };
  std::vector<float> want;
  {
    const reproducible on(true);
    want = bits(sum(x, 0));
  }
  for (const Sharding& s : shardings()) {
    const Array y = device_put(x, s);
    for (const std::vector<float>& got : {bits(both(y)), bits(jit(both)(y))})
      CHECK(std::vector<float>(got.begin(), got.begin() + 24) == want);
  }
}

TEST_CASE("modes: a jitted function is traced once for each mode of its callers") {
  const auto f = jit([](const Array& x) { return sum(x); });
  const Array x = device_put(mixed({64}), on_xy(P("x")));
  f(x);
  {
    const reproducible on(true);
    f(x);
    f(x);
  }
  f(x);
  CHECK(f.traces() == 2);
}

TEST_CASE("modes: strict holds where the line stands") {
  const Array a = device_put(mixed({8, 8}), on_xy(P("x"))),
              b = device_put(mixed({8, 8}, 1), on_xy(P(none, "x")));
  Array lazy;
  {
    const policy::strict here;
    lazy = a + b;
  }
  CHECK_THROWS_AS(lazy.to_vector<float>(), ShardingError);
  Array outside = a + b;
  const policy::strict here;
  CHECK(bits(outside).size() == 64);
}

TEST_CASE("modes: results go to the default device of their line") {
  const std::vector<Device> all = devices();
  Array a, b, c;
  {
    const default_device here(all[3]);
    a = mixed({4}) + 1;
    b = mixed({4}, 1);
  }
  c = b * 2;  // literals go where the others are
  CHECK(a.devices() == std::vector{all[3]});
  CHECK(c.devices() == std::vector{all[3]});
  Array d;
  {
    const default_device here(all[2]);
    d = a + mixed({4});  // one on device 3, one on 2: the line's
  }
  CHECK(d.devices() == std::vector{all[2]});
  {
    const default_device here(all[1]);
    CHECK((c + 1).devices() == std::vector{all[3]});
  }
  // what is made of nothing lies where it was made, whoever reads it
  const std::vector<std::function<Array()>> made = {[] { return zeros({4}); },
                                                    [] { return ones({4}); },
                                                    [] { return full({4}, 3); },
                                                    [] { return arange(4).astype(float32); },
                                                    [] { return eye(4)[1]; },
                                                    [] { return linspace(0, 1, 4); },
                                                    [] { return arange(0.0, 4.0, 1.0); },
                                                    [] { return random::uniform(random::key(1), {4}); }};
  for (std::size_t k = 0; k < made.size(); k++) {
    CAPTURE(k);
    Array e;
    {
      const default_device here(all[5]);
      e = made[k]();
    }
    e = e * 2 + 1;
    CHECK(e.devices() == std::vector{all[5]});
  }
}

TEST_CASE("modes: arrays of several places are read together as one after the other") {
  const std::vector<Device> all = devices();
  const Array x = device_put(mixed({4}), SingleDeviceSharding(all[1])),
              y = device_put(mixed({4}), SingleDeviceSharding(all[2])),
              z = device_put(mixed({8}), on_xy(P("x")));
  const Array a = x + 1, b = y + 1, c = z * 3, d = mixed({2}) + 1;
  eval(std::tuple(a, b, c, d));
  CHECK(a.devices() == std::vector{all[1]});
  CHECK(b.devices() == std::vector{all[2]});
  CHECK(c.sharding() == z.sharding());
  CHECK(d.devices() == std::vector{all[0]});
}

TEST_CASE("modes: no root of an evaluation binds another one, and the program cache changes no place") {
  const std::vector<Device> all = devices();
  const Array one = device_put(mixed({5}), SingleDeviceSharding(all[3]));
  const Array a = one + 1, b = arange(5) * 2;
  eval(std::tuple(a, b));
  CHECK(!b.committed());
  CHECK(b.devices() == std::vector{all[0]});
  const Array c = mixed({8}) * 2, d = filter_shard(ones({64}) * 2, on_xy(P("x")));
  const Array e = device_put(mixed({8}), NamedSharding(make_mesh({{"x", 2}}, {all[6], all[7]}), P("x"))) + 1;
  eval(std::tuple(c, d, e));
  CHECK(c.devices() == std::vector{all[0]});
  CHECK(e.devices() == std::vector{all[6], all[7]});
  const Array number = asarray(2.0f);
  CHECK(number.item<float>() == 2);
  for (int round = 0; round < 3; round++) {
    CHECK((number + number).devices() == std::vector{all[0]});
    const default_device here(all[1]);
    CHECK((number + number).devices() == std::vector{all[1]});
  }
}

TEST_CASE("modes: random numbers have the bits of the line's generator") {
  const Array key = random::key(7);
  std::vector<float> legacy, now = bits(random::normal(key, {10}));
  {
    const random::partitionable off(false);
    legacy = bits(random::normal(key, {10}));
  }
  Array lazy;
  {
    const random::partitionable off(false);
    lazy = random::normal(key, {10});
  }
  CHECK(bits(lazy) == legacy);
  CHECK(legacy != now);
}

// ---------------------------------------------------------------- pullbacks
TEST_CASE("pullbacks: a living one changes nothing else") {
  const Array x = mixed({8});
  auto [value, pullback] = vjp([](const Array& v) { return shardarray::tanh(v) * v; }, x);
  // donation still happens
  const auto f = jit([](const Array& v) { return v + 1; });
  Array y = mixed({64});
  eval(y);
  const auto* memory = explain(f, donated(y)).donations().empty() ? nullptr : &y;
  REQUIRE(memory);
  Array next = f(std::move(y));
  CHECK(y.is_deleted());
  CHECK(next.node()->evaluated());  // it ran, it was not recorded
  // what is evaluated lets go of its operands
  Array z = mixed({4}) * 2;
  z = z + 1;
  eval(z);
  CHECK(z.node()->in().empty());
  const auto back = std::get<0>(pullback(ones({8})));
  const std::vector<float> v = bits(x), g = bits(back);
  for (std::size_t k = 0; k < v.size(); k++) {
    const double t = std::tanh(static_cast<double>(v[k]));
    CHECK(g[k] == doctest::Approx((1 - t * t) * v[k] + t).epsilon(1e-5));
  }
}

TEST_CASE("pullbacks: called many times, on other threads, destroyed there, after their arrays are gone") {
  std::vector<float> want;
  auto made = [&] {
    const Array x = mixed({16}), w = mixed({16, 16}, 2);
    auto [value, pullback] =
        vjp([](const Array& a, const Array& b) { return sum(shardarray::sin(matmul(b, a))); }, x, w);
    want = bits(std::get<1>(pullback(array(2.0f))));
    CHECK(bits(std::get<1>(pullback(array(2.0f)))) == want);
    return std::make_unique<decltype(pullback)>(std::move(pullback));
  }();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int k = 0; k < 4; k++)
    threads.emplace_back([&] {
      const auto mine = *made;  // a copy
      for (int n = 0; n < 5; n++) right += bits(std::get<1>(mine(array(2.0f)))) == want;
    });
  for (std::thread& t : threads) t.join();
  CHECK(right == 20);
  std::thread([p = std::move(made)]() mutable { p.reset(); }).join();
  CHECK(bits(grad([](const Array& v) { return sum(v * v); })(array({3.0f}))) == std::vector<float>{6});
}

TEST_CASE("pullbacks: nested, in jit, of each other's results, let go in any order") {
  const Array x = array({0.5f, -1.0f});
  const auto cube = [](const Array& v) { return v * v * v; };
  auto outer = vjp(cube, x);
  auto inner = vjp(cube, outer.first);
  auto first = std::make_unique<decltype(outer)>(std::move(outer));
  auto second = std::make_unique<decltype(inner)>(std::move(inner));
  const Array chain = std::get<0>(first->second(std::get<0>(second->second(ones({2})))));
  first.reset();
  CHECK(bits(chain)[0] == doctest::Approx(9 * std::pow(0.5, 8)));
  second.reset();
  const auto f = jit([&](const Array& v) {
    auto [y, back] = vjp(cube, v);
    return std::get<0>(back(y));
  });
  CHECK(bits(f(x))[1] == doctest::Approx(-3));
  const auto g = grad([&](const Array& v) {
    auto [y, back] = vjp(cube, v);
    return sum(std::get<0>(back(ones({2}))));
  });
  CHECK(bits(g(x))[1] == doctest::Approx(-6));
}

// ---------------------------------------------------------------- denormals
#if defined(__x86_64__) || defined(__aarch64__)
// 1e-30 * 1e-12 is denormal in float32, and so is what is half of the smallest normal number.
Array vanishes(const Array& x) { return x * 1e-12; }

TEST_CASE("modes: flush_denormals gives zeros where the line stands, and nested guards hold") {
  const std::int64_t n = 100'003;
  const std::vector<float> kept(static_cast<std::size_t>(n), 1e-30f * 1e-12f), zeros(kept.size(), 0.0f);
  REQUIRE(kept[0] > 0);
  const Array x = full({n}, 1e-30f);
  for (const CodegenMode mode : {CodegenMode::off, CodegenMode::always}) {
    const testing::WithCodegen codegen(mode);
    const Array y = device_put(full({n}, 1e-30f), devices()[0]);
    CHECK(bits(vanishes(y)) == kept);
    Array late, outside = vanishes(y);
    {
      const flush_denormals on(true);
      late = vanishes(y);
      CHECK(bits(outside) == kept);  // recorded before
      CHECK(bits(vanishes(y)) == zeros);
      {
        const flush_denormals off(false);
        CHECK(bits(vanishes(y)) == kept);
      }
      CHECK(bits(vanishes(y)) == zeros);
    }
    CHECK(bits(late) == zeros);  // read outside
    CHECK(bits(vanishes(y)) == kept);
  }
}

TEST_CASE("modes: flush_denormals and other lines share a program, in every kind of step") {
  const flush_denormals initially(false);
  const auto both = [](auto f) {
    return jit([=](const Array& x) {
      const Array a = f(x);
      const flush_denormals on(true);
      return std::tuple(a, f(x));
    });
  };
  const auto check = [&](const std::string& what, auto f, const Array& x) {
    CAPTURE(what);
    for (const CodegenMode mode : {CodegenMode::off, CodegenMode::always}) {
      const testing::WithCodegen codegen(mode);
      const Array y = array(bits(x), x.shape());
      const auto [a, b] = both(f)(y);
      for (const float v : bits(a)) REQUIRE(v > 0);
      for (const float v : bits(b)) REQUIRE(v == 0);
    }
  };
  const Array small = full({40, 40}, 1e-22f), large = full({300, 300}, 1e-22f);
  check(
      "loop", [](const Array& x) { return x * 1e-18; }, small);
  check(
      "chain", [](const Array& x) { return x * 1e-10 * 1e-8 + x * 1e-18; }, large);
  check(
      "sum", [](const Array& x) { return sum(x * 1e-21, 1); }, small);
  check(
      "product", [](const Array& x) { return matmul(x, x); }, small);
  check(
      "large product", [](const Array& x) { return matmul(x, x); }, large);
  check(
      "product and loop", [](const Array& x) { return matmul(x * 1e4, x) * 0.00001; }, small);
  check(
      "scan", [](const Array& x) { return cumsum(x * 1e-20, 1); }, small);
  check(
      "constants", [](const Array& x) { return (Array(1e-30f) * Array(1e-10f)) + x * 0; }, small);
  check(
      "gradient", [](const Array& x) { return grad([](const Array& y) { return sum(y * y * 1e-20); })(x); },
      small);
  check(
      "loop of calls",
      [](const Array& x) {
        return scan([](const Array& c, const Array& r) { return std::pair(c * 0.1, r); }, x * 1e-16, x).first;
      },
      full({4, 4}, 1e-22f));
}

TEST_CASE("modes: lines of a scan's body have their own mode of denormals") {
  const auto run = [](bool outside, bool inside) {
    return jit([=](const Array& x) {
      const flush_denormals around(outside);
      const auto body = [=](const Array& c, const Array& r) {
        const flush_denormals within(inside);
        return std::pair(vanishes(c) * 0.5 + vanishes(r), r);
      };
      return scan(body, x[0], x).first;
    })(full({4, 4}, 1e-30f));
  };
  for (const CodegenMode mode : {CodegenMode::off, CodegenMode::always}) {
    const testing::WithCodegen codegen(mode);
    for (const bool outside : {false, true}) {
      CHECK(bits(run(outside, false))[0] > 0);
      CHECK(bits(run(outside, true))[0] == 0);
    }
  }
}

TEST_CASE("modes: a call in another mode of denormals traces again") {
  int traces = 0;
  const auto f = jit([&](const Array& x) {
    traces++;
    return vanishes(x);
  });
  const Array x = full({4}, 1e-30f);
  CHECK(bits(f(x))[0] > 0);
  {
    const flush_denormals on(true);
    CHECK(bits(f(x))[0] == 0);
    CHECK(bits(f(x))[0] == 0);
  }
  CHECK(bits(f(x))[0] > 0);
  CHECK(traces == 2);
}

TEST_CASE("modes: flush_denormals changes no thread's own arithmetic") {
  volatile float tiny = 1e-30f;
  const auto own = [&] { return tiny * 1e-12f; };
  REQUIRE(own() > 0);
  const Array x = full({100'000}, 1e-30f);
  {
    const flush_denormals on(true);
    CHECK(own() > 0);
    CHECK(bits(vanishes(x))[7] == 0);
    CHECK(own() > 0);
    // Values of callbacks are the thread's own.
    Array seen = jit([](const Array& v) { return vanishes(v); })(x);
    CHECK(bits(seen)[9] == 0);
  }
  CHECK(own() > 0);
#if defined(__x86_64__)
  const unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before | 0x8040);  // the user's own
  {
    const flush_denormals on(true);
    CHECK(bits(vanishes(x))[0] == 0);
  }
  const unsigned after = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before);
  CHECK((after & 0x8040) == 0x8040);
#endif
}
#endif

// ---------------------------------------------------------------- donation
TEST_CASE("donation: never changes a result or where it lies") {
  for (const Sharding& s : {on_xy(P("x")), on_xy(P()), on_xy(P("x", "y"))})
    for (const Sharding& given : {on_xy(P()), on_xy(P("y")), on_xy(P(none, "x"))}) {
      const std::vector<std::function<Array(const Array&)>> programs = {
          [=](const Array& v) { return filter_shard(v, s) * 2; },
          [=](const Array& v) { return filter_shard(v * 2, s) + 1; },
          [=](const Array& v) { return matmul(v, filter_shard(v, s)); },
          [=](const Array& v) { return transpose(v) + filter_shard(v, s); },
          [=](const Array& v) { return v * 2; },
          [=](const Array& v) { return flip(v, 0); },
      };
      for (const auto& p : programs) {
        const Array x = mixed({8, 8});
        const auto kept = jit(p), by_move = jit(p), by_option = jit(p, {.donate = Donate::all});
        const Array a = kept(device_put(x, given));
        Array moved = device_put(x + 0, given), opted = device_put(x + 0, given);
        const Array b = by_move(std::move(moved)), c = by_option(opted);
        CHECK(a.sharding() == b.sharding());
        CHECK(a.sharding() == c.sharding());
        CHECK(bits(a) == bits(b));
        CHECK(bits(a) == bits(c));
      }
    }
}

}  // namespace modes_test

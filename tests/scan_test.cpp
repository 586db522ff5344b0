// Running reductions: JAX's values and gradients (scans.json), every sharding, the order of float sums, transfers.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "golden.h"
#include "program_of.h"
#include "shardarray/policy.h"

namespace scan_test {

namespace sa = shardarray;
using namespace program_test;
using golden::Json;
using sa::axes;
using sa::CumulativeOptions;

namespace {

Array scanned(const std::string& name, const Array& x, const CumulativeOptions& o) {
  return name == "cumsum"    ? sa::cumsum(x, o)
         : name == "cumprod" ? sa::cumprod(x, o)
         : name == "cummax"  ? sa::cummax(x, o)
                             : sa::cummin(x, o);
}

std::vector<sa::Sharding> shardings(std::size_t rank) {
  const auto mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  std::vector<sa::Sharding> r{sa::NamedSharding(mesh, P()), sa::NamedSharding(mesh, P("x")),
                              sa::NamedSharding(mesh, P(axes("y", "x")))};
  if (rank > 1)
    for (const P& p : {P(sa::none, "x"), P("y", "x"), P("x", "y"), P(sa::none, axes("x", "y"))})
      r.emplace_back(sa::NamedSharding(mesh, p));
  return r;
}

}  // namespace

TEST_CASE("scan: JAX's values and gradients, whatever is cut") {
  const Json all = golden::load("scans.json");
  for (const Json& c : all["cases"]) {
    const std::string name = c["name"];
    const CumulativeOptions o{.axis = c["axis"].get<std::int64_t>(), .reverse = c["reverse"].get<bool>()};
    const Array plain = golden::array(c["x"]);
    const bool exact = !sa::is_floating(plain.dtype()) || name == "cummax" || name == "cummin";
    const double rel = exact ? 0 : 2e-6, abs = exact ? 0 : 2e-6;
    CAPTURE(name);
    CAPTURE(c["x"].dump());
    for (const sa::Sharding& s : shardings(static_cast<std::size_t>(plain.ndim()))) {
      const Array x = sa::device_put(plain, s);
      CAPTURE(s.to_string());
      const auto f = [&](const Array& v) { return scanned(name, v, o); };
      const Array y = sa::jit(f)(x);
      CHECK(y.dtype() == plain.dtype());
      CHECK(golden::close(y, c["y"], rel, abs));
      if (!c.contains("gradient")) continue;
      const Array w = golden::array(c["weights"]);
      const Array g = sa::jit(sa::grad([&](const Array& v) { return sa::sum(f(v) * w); }))(x);
      CHECK(golden::close(g, c["gradient"], 2e-5, 2e-5));
    }
  }
  for (const Json& c : all["defaults"]) {
    CAPTURE(c.dump());
    const Array y = scanned(c["name"], sa::ones({2, 3}, golden::dtype_named(c["dtype"])), {});
    CHECK(y.dtype() == golden::dtype_named(c["result"]));
    CHECK(y.shape() == golden::shape_of(c["shape"]));
  }
}

TEST_CASE("scan: derivatives of sinc are JAX's, at 0 too") {
  const auto derived = [](auto f) {
    return [f](const Array& x) { return sa::grad([f](const Array& v) { return sa::sum(f(v)); })(x); };
  };
  const auto f0 = [](const Array& x) { return sa::sinc(x); };
  const auto f1 = derived(f0);
  const auto f2 = derived(f1);
  const auto f3 = derived(f2);
  const auto f4 = derived(f3);
  const std::vector<std::function<Array(const Array&)>> orders{f0, f1, f2, f3, f4};
  const Json cases = golden::load("scans.json")["sinc"];
  for (const Json& c : cases) {
    CAPTURE(c["order"].get<int>());
    CHECK(golden::close(orders[c["order"].get<std::size_t>()](golden::array(c["x"])), c["y"], 1e-11, 1e-12));
  }
}

TEST_CASE("scan: bool extrema, dtypes that were asked for, 16-bit floats in float32") {
  const Array b = sa::array({false, true, false});
  CHECK(sa::cummax(b, 0).dtype() == sa::bool_);
  CHECK(values(sa::cummax(b, 0)) == std::vector<double>{0, 1, 1});
  CHECK(values(sa::cummin(b, {.axis = 0, .reverse = true})) == std::vector<double>{0, 0, 0});
  CHECK(sa::cumsum(b, {.dtype = sa::float64}).dtype() == sa::float64);
  CHECK(values(sa::cumsum(sa::full({3}, 100, sa::int8), {.dtype = sa::int32})) ==
        std::vector<double>{100, 200, 300});
  CHECK(values(sa::cumsum(sa::full({4096}, 1, sa::bfloat16)))[4095] == 4096);  // in bfloat16: 256
  CHECK(values(sa::cumsum(sa::ones({300}, sa::bool_), {.dtype = sa::bool_})) == std::vector<double>(300, 1));
  CHECK(values(sa::cumprod(sa::array({true, true, false, true}), {.dtype = sa::bool_})) ==
        std::vector<double>{1, 1, 0, 0});
  // Gradients too: in float16 the product of 300 and 300 is infinite.
  const Array x = sa::array({1, 1, 300, 300, 1, 1}, {6}, sa::float16);
  const auto second = [](const Array& v) { return sa::cumprod(v)[1]; };
  CHECK(values(sa::grad(second)(x)) == std::vector<double>{1, 1, 0, 0, 0, 0});
}

TEST_CASE("scan: long lines, cut or not, are as exact as sums") {
  std::mt19937 rng(5);
  std::uniform_real_distribution<float> any(0, 1);
  for (const Shape& shape : {Shape{100000}, Shape{5000, 3}, Shape{3, 5000}, Shape{2, 2050, 70}}) {
    std::vector<float> data(static_cast<std::size_t>(sa::num_elements(shape)));
    for (float& v : data) v = any(rng);
    const std::int64_t axis = shape.size() == 1 || shape[0] > 10 ? 0 : 1;
    std::int64_t inner = 1;
    for (auto d = static_cast<std::size_t>(axis) + 1; d < shape.size(); d++) inner *= shape[d];
    const std::int64_t n = shape[static_cast<std::size_t>(axis)];
    std::vector<double> want(data.begin(), data.end());
    for (std::size_t k = 0; k < want.size(); k++)
      if (static_cast<std::int64_t>(k) / inner % n > 0) want[k] += want[k - static_cast<std::size_t>(inner)];
    const Array plain = sa::array(data, shape);
    for (const sa::Sharding& s : shardings(shape.size())) {
      CAPTURE(s.to_string());
      const Array x = sa::device_put(plain, s);
      CHECK(golden::close(values(sa::cumsum(x, axis)), want, 2e-6));
      // The last one is the sum, from either end.
      const auto back = values(sa::cumsum(x, {.axis = axis, .reverse = true}));
      CHECK(std::abs(back[0] - want[static_cast<std::size_t>((n - 1) * inner)]) <= 2e-6 * back[0]);
    }
  }
}

TEST_CASE("scan: sums of what is not negative never fall, products are those of neighbours") {
  std::mt19937 rng(7);
  std::uniform_real_distribution<float> any(0, 1);
  for (const std::int64_t n : {1000, 4096, 10000}) {
    std::vector<float> data(static_cast<std::size_t>(n)), turns(data.size());
    for (std::size_t k = 0; k < data.size(); k++) {
      data[k] = rng() % 3 ? any(rng) : 0;
      turns[k] = k % 2 ? 0.5f : 2;
    }
    for (const sa::Sharding& s : shardings(1))
      for (const bool reverse : {false, true}) {
        CAPTURE(s.to_string());
        CAPTURE(n);
        const CumulativeOptions o{.axis = 0, .reverse = reverse};
        auto y = values(sa::cumsum(sa::device_put(sa::array(data), s), o));
        if (reverse) std::reverse(y.begin(), y.end());
        CHECK(std::is_sorted(y.begin(), y.end()));
        for (const double p : values(sa::cumprod(sa::device_put(sa::array(turns), s), o)))
          CHECK((p == 1 || p == (reverse ? 0.5 : 2)));
      }
  }
}

TEST_CASE("scan: in reproducible mode no cut changes a bit") {
  std::mt19937 rng(6);
  std::normal_distribution<float> any;
  std::vector<float> data(3000);
  for (float& v : data) v = any(rng);
  const sa::reproducible mode(true);
  for (const char* name : {"cumsum", "cumprod", "cummax"}) {
    const Array plain = sa::array(data, {1500, 2});
    const Array want = scanned(name, plain, {.axis = 0});
    for (const sa::Sharding& s : shardings(2))
      CHECK(golden::bits(scanned(name, sa::device_put(plain, s), {.axis = 0})) == golden::bits(want));
  }
}

TEST_CASE("scan: along a cut dimension only totals move") {
  const auto f = [](const Array& v) { return sa::cumsum(v, 0); };
  // A device gets the totals [8] of 3 others at most; of 7 rows the last of 4 tiles has one, of 5 it has none.
  CHECK(planned(f, placed({16, 8}, on_xy(P("x")))) == "exchange{x} 96");
  CHECK(planned(f, placed({16, 8}, on_xy(P("x", "y")))) == "exchange{x} 48");
  CHECK(planned(f, placed({7, 8}, on_xy(P("x")))) == "exchange{x} 96");
  CHECK(planned(f, placed({5, 8}, on_xy(P("x")))) == "exchange{x} 64");
  CHECK(planned(f, placed({1, 8}, on_xy(P("x")))) == "");
  CHECK(planned(f, placed({16, 8}, on_xy(P(sa::none, "x")))) == "");
  const auto last = [](const Array& v) { return sa::cummax(v, {.axis = 1, .reverse = true}); };
  CHECK(planned(last, placed({16, 8}, on_xy(P("x", "y")))) == "exchange{y} 16");
}

TEST_CASE("scan: messages") {
  const Array x = sa::ones({2, 3});
  const auto message = [](auto f) {
    try {
      f();
    } catch (const sa::Error& e) { return std::string(e.text()); }
    return std::string();
  };
  CHECK(message([&] { sa::cumsum(x, 2); }).find("cumsum: axis 2 is out of bounds for shape") == 0);
  CHECK(message([&] { sa::cummax(x, {.axis = -3}); }).find("cummax: axis -3 is out of bounds for shape") ==
        0);
  CHECK(message([&] {
          sa::rot90(x, 1, {0, 0});
        }) == "rot90: axes 0 and 0 of f32[2,3]. A plane has two axes. Give two different ones.");
  CHECK(message([&] { sa::rot90(sa::ones({3})); }).find("rot90: axis 1 is out of bounds for shape") == 0);
}

}  // namespace scan_test

// The features a newcomer meets first, in a few lines each; also what runs under the sanitizers.
#include <doctest/doctest.h>

#include <cmath>

#include "shardarray/shardarray.h"

namespace smoke_test {

namespace sa = shardarray;

namespace {

struct Affine {
  sa::Array weight, bias;
  sa::Array operator()(const sa::Array& x) const { return sa::matmul(weight, x) + bias; }
};

double loss_by_hand(double w, double b, const std::vector<double>& x) {
  double s = 0;
  for (double v : x) s += (w * v + b - std::sin(v)) * (w * v + b - std::sin(v));
  return s / static_cast<double>(x.size());
}

}  // namespace

TEST_CASE("smoke: a value on one device and on eight") {
  const std::vector<double> x{-1, 0.5, 2, 3, -2,
                              0,  1,   4, 5, 6};  // 10 rows over 8 devices: uneven and empty tails
  const auto sharding = sa::PositionalSharding(sa::create_device_mesh({8}));
  const sa::Array one = sa::array(x), eight = sa::device_put(one, sharding);
  CHECK(eight.addressable_shards().size() == 8);
  CHECK((eight * 2.0 + 1.0).to_vector<double>() == (one * 2.0 + 1.0).to_vector<double>());
  double sum = 0;
  for (double v : x) sum += v;
  CHECK(sa::sum(eight).item<double>() == doctest::Approx(sum));
}

TEST_CASE("smoke: jit, grad, vmap and donation in a training step over eight devices") {
  const std::vector<double> x{-1, 0.5, 2, 0.25, -0.5, 0, 1, 1.5};
  const auto sharding = sa::PositionalSharding(sa::create_device_mesh({8, 1}));
  const sa::Array data = sa::device_put(sa::array(x).reshape({8, 1}), sharding);
  Affine model = sa::filter_shard(
      Affine{sa::array(std::vector<double>{0.5}).reshape({1, 1}), sa::array(std::vector<double>{0.1})},
      sharding.replicate());
  const auto loss = [](const Affine& m, const sa::Array& d) {
    return sa::mean(sa::square(sa::vmap(m)(d) - sa::sin(d)));
  };
  const auto step = sa::jit([=](Affine m, sa::Array d) {
    const auto [value, g] = sa::value_and_grad(loss)(m, d);
    return std::tuple(
        sa::tree_map([](const sa::Array& p, const sa::Array& dp) { return p - 0.1 * dp; }, m, g), value);
  });
  double w = 0.5, b = 0.1;
  for (int k = 0; k < 5; k++) {
    sa::Array value;
    std::tie(model, value) = step(std::move(model), data);
    CHECK(value.item<double>() == doctest::Approx(loss_by_hand(w, b, x)));
    const double e = 1e-6;
    const double dw = (loss_by_hand(w + e, b, x) - loss_by_hand(w - e, b, x)) / (2 * e);
    const double db = (loss_by_hand(w, b + e, x) - loss_by_hand(w, b - e, x)) / (2 * e);
    w -= 0.1 * dw;
    b -= 0.1 * db;
    CHECK(model.weight.item<double>() == doctest::Approx(w));
    CHECK(model.bias.item<double>() == doctest::Approx(b));
    CHECK(model.weight.is_fully_replicated());
  }
  CHECK(step.traces() == 1);
}

TEST_CASE("smoke: a literal has all its digits beside float64") {
  const sa::Array x = sa::array(std::vector<double>{1, 3});
  CHECK((x * 0.1).to_vector<double>() == std::vector<double>{0.1, 3 * 0.1});
}

TEST_CASE("smoke: comparing") {
  const sa::Array x = sa::array({1.0, 2.0}), y = x + 1e-7;
  CHECK(sa::allclose(x, y));
  CHECK_FALSE(sa::allclose(x, x + 1e-3));
  CHECK(sa::allclose(x, x + 1e-3, {.rtol = 0, .atol = 1e-2}));
  CHECK(sa::array_equal(x, sa::array({1, 2})));
  CHECK_FALSE(sa::array_equal(x, sa::array({{1, 2}})));
  CHECK_FALSE(sa::allclose(sa::array({NAN}), sa::array({NAN})));
  CHECK(sa::allclose(sa::array({NAN, INFINITY}), sa::array({NAN, INFINITY}), {.equal_nan = true}));
}

TEST_CASE("smoke: what explain says of a sharded product") {
  const auto mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  const sa::Array a = sa::device_put(sa::ones({8, 32}), sa::NamedSharding(mesh, sa::P("x", "y")));
  const sa::Array b = sa::device_put(sa::ones({32, 16}), sa::NamedSharding(mesh, sa::P("y")));
  const auto e = sa::explain([](const sa::Array& l, const sa::Array& r) { return sa::matmul(l, r); }, a, b);
  REQUIRE(e.transfers().size() == 1);
  CHECK(e.transfers()[0].kind == "all_reduce");
  CHECK(e.transfers()[0].axes == "{y}");
  CHECK(e.transfers()[0].bytes_per_device == 128);  // 2 (g-1)/g of a tile of 2 x 16 floats, g = 2
  CHECK(sa::matmul(a, b).to_vector<float>() == std::vector<float>(128, 32.0f));
}

TEST_CASE("smoke: misuse is an exception that says what to do") {
  sa::Array x = sa::ones({3});
  const auto f = sa::jit([](sa::Array v) { return v * 2.0; });
  const sa::Array y = f(std::move(x));
  CHECK_THROWS_AS(x + 1.0, sa::DonationError);
  CHECK_THROWS_AS(sa::jit([](sa::Array v) { return v * v.item<float>(); })(sa::Array(1.0)), sa::TraceError);
  CHECK_THROWS_AS(sa::ones({2}) + sa::ones({3}), sa::ShapeError);
}

}  // namespace smoke_test

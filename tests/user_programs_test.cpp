// Programs as users write them, compared with references from outside this library: closed forms, one model at a time, LAPACK.
#include <doctest/doctest.h>
#include <shardarray/shardarray.h>

#include <cmath>
#include <numbers>

namespace user_programs_test {

namespace sa = shardarray;
using sa::Array;
using sa::none;
using sa::P;

namespace {

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

const double strike = 105, rate = 0.03, years = 1.5, volatility = 0.2;

// Of a European call: the discounted mean of what it pays, over normal draws.
Array price_of_call(const Array& spot, const Array& draws) {
  const double drift = (rate - volatility * volatility / 2) * years;
  const Array at_end = spot * sa::exp(drift + volatility * std::sqrt(years) * draws);
  return std::exp(-rate * years) * sa::mean(sa::maximum(at_end - strike, 0.0));
}

}  // namespace

TEST_CASE("programs of users: the price of an option and its slope are Black's and Scholes's") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  constexpr std::int64_t n = 1 << 21;
  const Array draws = sa::jit([](const Array& key) { return sa::random::normal(key, {n}); },
                              {.out_shardings = sa::NamedSharding(mesh, P("x"))})(sa::random::key(3));
  const auto [price, slope] = sa::jit(sa::value_and_grad(price_of_call))(Array(100.0f), draws);
  const double spot = 100, spread = volatility * std::sqrt(years),
               d1 = (std::log(spot / strike) + (rate + volatility * volatility / 2) * years) / spread,
               want = spot * normal_cdf(d1) - strike * std::exp(-rate * years) * normal_cdf(d1 - spread);
  // Of what one draw pays the deviation is about 17, that of its slope 0.7: four times those of the means.
  CHECK(std::abs(price.item<double>() - want) < 4 * 17 / std::sqrt(n));
  CHECK(std::abs(slope.item<double>() - normal_cdf(d1)) < 4 * 0.7 / std::sqrt(n));
}

TEST_CASE("programs of users: an ensemble that is trained at once is its members, each trained alone") {
  const sa::Mesh mesh = sa::make_mesh({{"member", 8}});
  constexpr std::int64_t members = 32;
  using Model = sa::nn::MLP<>;
  const auto optim = sa::optim::adam(1e-2);
  const Array x = sa::random::normal(sa::random::key(1), {64, 3}), y = sa::sin(sa::sum(x, 1));
  const auto trained = [&](const Array& key) {
    Model model = Model::init(3, 1, 8, 1, key);
    auto state = optim.init(model);
    Array loss;
    for (int step = 0; step < 3; step++) {
      const auto [value, grads] = sa::value_and_grad(
          [&](const Model& m) { return sa::mean(sa::square(sa::squeeze(sa::vmap(m)(x), 1) - y)); })(model);
      const auto [updates, next] = optim.update(grads, state);
      model = sa::apply_updates(model, updates), state = next, loss = value;
    }
    return std::pair(model, loss);
  };
  const Array keys = sa::random::split(sa::random::key(2), members);
  const auto [together, losses] =
      sa::jit(sa::vmap(trained))(sa::device_put(keys, sa::NamedSharding(mesh, P("member"))));
  for (const int k : {0, 13, 31}) {
    const auto [alone, loss] = sa::jit(trained)(keys[k]);
    CHECK(std::abs(losses[k].item<double>() - loss.item<double>()) < 1e-5);
    const std::vector<float> all = together.layers[0].weight[k].to_vector<float>(),
                             one = alone.layers[0].weight.to_vector<float>();
    REQUIRE(all.size() == one.size());
    for (std::size_t i = 0; i < all.size(); i++) CHECK(std::abs(all[i] - one[i]) < 1e-5);
  }
}

TEST_CASE("programs of users: components by iteration of cut rows are the eigenvectors that LAPACK finds") {
  const sa::Mesh mesh = sa::make_mesh({{"rows", 8}});
  const Array mix =
      sa::random::normal(sa::random::key(4), {12, 12}) * sa::exp(-0.5 * sa::arange(12, sa::float32));
  const Array rows = sa::matmul(sa::random::normal(sa::random::key(5), {1000, 12}), mix.T());
  const auto components = sa::jit([](const Array& given) {
    const Array x = given - sa::mean(given, 0), covariance = sa::matmul(x.T(), x) / 999.0;
    Array q = sa::eye(12)[{sa::all, sa::slice(0, 2)}];
    for (int k = 0; k < 60; k++) q = sa::linalg::qr(sa::matmul(covariance, q)).q;
    return std::pair(q, covariance);
  });
  const auto [q, covariance] = components(sa::device_put(rows, sa::NamedSharding(mesh, P("rows"))));
  const auto [values, vectors] = sa::linalg::eigh(covariance);  // rising
  for (const int k : {0, 1}) {
    const Array found = q[{sa::all, k}], want = vectors[{sa::all, 11 - k}];
    CHECK(std::abs(std::abs(sa::dot(found, want).item<double>()) - 1) < 1e-4);
  }
}

}  // namespace user_programs_test

// Distributions against jax.random, against their distribution functions, and on devices; initial weights.
#include <cmath>
#include <functional>
#include <numbers>

#include "golden.h"
#include "messages.h"

namespace distributions_test {

namespace sa = shardarray;
using golden::Json;
using sa::Array;
using sa::P;
using sa::Shape;
namespace rnd = sa::random;

namespace {

using Parameters = std::vector<Array>;
using Draw = std::function<Array(const Array& key, const Parameters&, const Shape&, sa::DType, const Json&)>;

const std::map<std::string, Draw>& draws() {
  static const std::map<std::string, Draw> all{
#define PLAIN(name)                                                           \
  {                                                                           \
#name, [](const Array& k, const Parameters&, const Shape& s, sa::DType t, \
              const Json&) { return rnd::name(k, s, t); }                     \
  }
#define ONE(name)                                                               \
  {                                                                             \
#name, [](const Array& k, const Parameters& p, const Shape& s, sa::DType t, \
              const Json&) { return rnd::name(k, p[0], s, t); }                 \
  }
#define TWO(name)                                                               \
  {                                                                             \
#name, [](const Array& k, const Parameters& p, const Shape& s, sa::DType t, \
              const Json&) { return rnd::name(k, p[0], p[1], s, t); }           \
  }
      PLAIN(laplace),
      PLAIN(logistic),
      PLAIN(cauchy),
      PLAIN(rademacher),
      PLAIN(maxwell),
      ONE(pareto),
      ONE(rayleigh),
      ONE(wald),
      ONE(lognormal),
      ONE(geometric),
      ONE(gamma),
      ONE(loggamma),
      ONE(chisquare),
      ONE(t),
      ONE(dirichlet),
      ONE(poisson),
      TWO(double_sided_maxwell),
      TWO(weibull_min),
      TWO(beta),
      TWO(f),
      TWO(binomial),
#undef PLAIN
#undef ONE
#undef TWO
      {"triangular", [](const Array& k, const Parameters& p, const Shape& s, sa::DType t,
                        const Json&) { return rnd::triangular(k, p[0], p[1], p[2], s, t); }},
      {"generalized_normal",
       [](const Array& k, const Parameters&, const Shape& s, sa::DType t, const Json& c) {
         return rnd::generalized_normal(k, c["p"].get<double>(), s, t);
       }},
      {"ball", [](const Array& k, const Parameters&, const Shape& s, sa::DType t,
                  const Json& c) { return rnd::ball(k, c["d"], c["p"].get<double>(), s, t); }},
      {"multinomial", [](const Array& k, const Parameters& p, const Shape&, sa::DType t,
                         const Json&) { return rnd::multinomial(k, p[0], p[1], t); }},
  };
  return all;
}

// Logarithms, powers and tangents of XLA are off by some ulp, and sums of these by more where they cancel.
double tolerance(const std::string& name, sa::DType t) {
  const double ulp = t == sa::float64 ? 2.3e-16 : t == sa::float32 ? 1.2e-7 : t == sa::float16 ? 1e-3 : 8e-3;
  return (name == "cauchy" || t == sa::float64 ? 64 : 16) * ulp;
}

double erf_normal(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// The largest distance between the share of the draws below x and F(x); of n draws it is above 2 / sqrt(n) once in 1,500 draws.
double distance(const Array& draw, const std::function<double(double)>& below) {
  std::vector<double> x = draw.to_vector<double>();
  std::sort(x.begin(), x.end());
  const auto n = static_cast<double>(x.size());
  double largest = 0;
  for (std::size_t k = 0; k < x.size(); k++) {
    const double f = below(x[k]);
    largest = std::max(
        {largest, std::abs(f - static_cast<double>(k) / n), std::abs(static_cast<double>(k + 1) / n - f)});
  }
  return largest;
}

// Sum of (observed - expected)^2 / expected over whole numbers that are expected 10 times at least, and how many these are.
std::pair<double, int> chi_square(const Array& draw, int highest,
                                  const std::function<double(int)>& probability) {
  std::vector<double> seen(static_cast<std::size_t>(highest) + 1);
  for (const double v : draw.to_vector<double>())
    if (v >= 0 && v <= highest) seen[static_cast<std::size_t>(v)]++;
  const auto n = static_cast<double>(draw.size());
  double sum = 0;
  int cells = 0;
  for (int k = 0; k <= highest; k++) {
    const double expected = n * probability(k);
    if (expected < 10) continue;
    sum += (seen[static_cast<std::size_t>(k)] - expected) * (seen[static_cast<std::size_t>(k)] - expected) /
           expected;
    cells++;
  }
  return {sum, cells};
}

}  // namespace

TEST_CASE("distributions: JAX's numbers, in both orders of counters") {
  const Json cases = golden::load("distributions.json")["cases"];
  std::map<std::string, int> seen;
  for (const Json& c : cases) {
    const std::string name = c["name"], dtype = c["dtype"];
    CAPTURE(name + " " + dtype + " " + c["shape"].dump() + " " + c["partitionable"].dump());
    const rnd::partitionable mode(c["partitionable"].get<bool>());
    Parameters p;
    for (const Json& x : c["parameters"]) p.push_back(golden::array(x));
    const sa::DType t = golden::dtype_named(dtype);
    const Array key = rnd::PRNGKey(std::int32_t{7});
    const auto one = [&](const Array& k, const Shape& shape) { return draws().at(name)(k, p, shape, t, c); };
    const Shape shape = golden::shape_of(c["shape"]);
    const auto draw = [&](const Array& k) {
      if (!c.contains("alone")) return one(k, shape);
      return sa::vmap([&](const Array& own) { return one(own, {}); })(rnd::split(k, shape[0]));
    };
    const Array x = draw(key);
    CHECK(x.dtype() == t);
    const double close = tolerance(name, t);
    CHECK(golden::close(x, c["out"], close, close));
    CHECK(golden::close(sa::jit(draw)(key), c["out"], close, close));
    seen[name]++;
  }
  for (const auto& entry : draws()) CHECK_MESSAGE(seen[entry.first] > 0, entry.first);
}

TEST_CASE("distributions: many draws are distributed as they should be") {
  const Shape n{40000};
  const double bound = 2 / std::sqrt(40000.0);
  const Array key = rnd::key(11);
  using Below = std::function<double(double)>;
  const std::vector<std::pair<Array, Below>> continuous{
      {rnd::laplace(key, n), [](double x) { return x < 0 ? std::exp(x) / 2 : 1 - std::exp(-x) / 2; }},
      {rnd::logistic(key, n), [](double x) { return 1 / (1 + std::exp(-x)); }},
      {rnd::cauchy(key, n), [](double x) { return 0.5 + std::atan(x) / std::numbers::pi; }},
      {rnd::pareto(key, 3, n), [](double x) { return 1 - std::pow(x, -3); }},
      {rnd::rayleigh(key, 2, n), [](double x) { return 1 - std::exp(-x * x / 8); }},
      {rnd::weibull_min(key, 2, 1.5, n), [](double x) { return 1 - std::exp(-std::pow(x / 2, 1.5)); }},
      {rnd::lognormal(key, 0.5, n), [](double x) { return erf_normal(std::log(x) / 0.5); }},
      {rnd::triangular(key, 0, 1, 3, n),
       [](double x) { return x < 1 ? x * x / 3 : 1 - (3 - x) * (3 - x) / 6; }},
      {rnd::wald(key, 1.5, n),
       [](double x) {
         const double r = std::sqrt(1 / x);
         return erf_normal(r * (x / 1.5 - 1)) + std::exp(2 / 1.5) * erf_normal(-r * (x / 1.5 + 1));
       }},
      {rnd::maxwell(key, n),
       [](double x) {
         return std::erf(x / std::numbers::sqrt2) -
                std::sqrt(2 / std::numbers::pi) * x * std::exp(-x * x / 2);
       }},
      {rnd::gamma(key, 1, n), [](double x) { return -std::expm1(-x); }},
      {rnd::gamma(key, 3, n), [](double x) { return 1 - std::exp(-x) * (1 + x + x * x / 2); }},
      {rnd::gamma(key, 0.5, n), [](double x) { return std::erf(std::sqrt(x)); }},
      {sa::exp(rnd::loggamma(key, 0.5, n)), [](double x) { return std::erf(std::sqrt(x)); }},
      {rnd::chisquare(key, 2, n), [](double x) { return -std::expm1(-x / 2); }},
      {rnd::beta(key, 2, 3, n), [](double x) { return x * x * (6 - 8 * x + 3 * x * x); }},
      {rnd::t(key, 2, n), [](double x) { return 0.5 + x / (2 * std::sqrt(2 + x * x)); }},
      {rnd::f(key, 2, 2, n), [](double x) { return x / (1 + x); }},
      {rnd::generalized_normal(key, 1, n),
       [](double x) { return x < 0 ? std::exp(x) / 2 : 1 - std::exp(-x) / 2; }},
      {rnd::dirichlet(key, sa::ones({3}), n)[{sa::all, 0}], [](double x) { return 1 - (1 - x) * (1 - x); }},
      {sa::sqrt(sa::sum(sa::square(rnd::ball(key, 2, 2, n)), 1)), [](double x) { return x * x; }},
  };
  for (std::size_t k = 0; k < continuous.size(); k++)
    CHECK_MESSAGE(distance(continuous[k].first, continuous[k].second) < bound, "distribution " << k);

  const auto poisson = [](double mean) {
    return [mean](int k) { return std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0)); };
  };
  const auto binomial = [](double m, double p) {
    return [m, p](int k) {
      return std::exp(std::lgamma(m + 1) - std::lgamma(k + 1.0) - std::lgamma(m - k + 1) + k * std::log(p) +
                      (m - k) * std::log1p(-p));
    };
  };
  const std::vector<std::tuple<Array, int, std::function<double(int)>>> counts{
      {rnd::poisson(key, 3, n), 40, poisson(3)},
      {rnd::poisson(key, 25, n), 80, poisson(25)},
      {rnd::binomial(key, 12, 0.3, n), 12, binomial(12, 0.3)},
      {rnd::binomial(key, 60, 0.6, n), 60, binomial(60, 0.6)},
      {rnd::geometric(key, 0.25, n), 60, [](int k) { return k == 0 ? 0 : 0.25 * std::pow(0.75, k - 1); }},
  };
  for (std::size_t k = 0; k < counts.size(); k++) {
    const auto& [draw, highest, probability] = counts[k];
    const auto [sum, cells] = chi_square(draw, highest, probability);
    CHECK_MESSAGE(sum < cells + 5 * std::sqrt(2.0 * cells), "counts " << k);  // five standard deviations
  }
}

TEST_CASE("distributions: a sharded draw has the same numbers and moves nothing") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  const Array key = rnd::key(7), placed = sa::device_put(key, sa::NamedSharding(mesh, P()));
  const std::vector<std::function<Array(const Array&)>> all{
      [](const Array& k) {
        return rnd::laplace(k, {8, 6});
      },
      [](const Array& k) {
        return rnd::wald(k, 2, {8, 6});
      },
      [](const Array& k) {
        return rnd::maxwell(k, {8, 6});
      },
      [](const Array& k) {
        return rnd::gamma(k, 0.7, {8, 6});
      },
      [](const Array& k) {
        return rnd::beta(k, 2, 0.5, {8, 6});
      },
      [](const Array& k) {
        return rnd::poisson(k, 4, {8, 6});
      },
      [](const Array& k) {
        return rnd::binomial(k, 30, 0.4, {8, 6});
      },
  };
  using Draws = std::vector<std::function<Array(const Array&)>>;
  const Draws formulas{
      [](const Array& k) {
        return rnd::cauchy(k, {8, 6});
      },
      [](const Array& k) {
        return rnd::logistic(k, {8, 6});
      },
      [](const Array& k) {
        return rnd::rademacher(k, {8, 6});
      },
      [](const Array& k) {
        return rnd::geometric(k, 0.3, {8, 6});
      },
      [](const Array& k) {
        return rnd::chisquare(k, 3, {8, 6});
      },
      [](const Array& k) {
        return rnd::t(k, 3, {8, 6});
      },
  };
  // Of vectors and matrices, which are whole.
  const Draws wholes{
      [](const Array& k) { return rnd::dirichlet(k, sa::ones({6}), {8}); },
      [](const Array& k) { return rnd::ball(k, 6, 2, {8}); },
      [](const Array& k) { return rnd::multivariate_normal(k, sa::zeros({6}), sa::eye(6), Shape{8}); },
      [](const Array& k) { return rnd::orthogonal(k, 4, {8}); },
  };
  const auto check = [&](const Draws& draws, const P& spec) {
    for (std::size_t n = 0; n < draws.size(); n++) {
      CAPTURE(n);
      const auto draw = [&](const Array& k) {
        return sa::filter_shard(draws[n](k), sa::NamedSharding(mesh, spec));
      };
      CHECK(golden::bits(sa::jit(draw)(placed)) == golden::bits(draws[n](key)));
      CHECK(sa::explain(draw, placed).transfers().empty());
    }
  };
  check(all, P("x", "y"));
  check(formulas, P("x", "y"));
  check(wholes, P(sa::axes("x", "y")));
}

TEST_CASE("distributions: parameters are broadcast, of other dtypes and in maps; derivatives of formulas") {
  const Array key = rnd::key(3), rows = sa::ones({3, 1}), columns = sa::array({1.0f, 2.0f});
  CHECK(rnd::weibull_min(key, rows, columns).shape() == Shape{3, 2});
  CHECK(rnd::gamma(key, columns, {4, 2}, sa::float64).dtype() == sa::float64);
  CHECK(rnd::dirichlet(key, columns, {4}).shape() == Shape{4, 2});
  CHECK(rnd::multinomial(key, 5, sa::array({0.5f, 0.5f})).shape() == Shape{2});
  CHECK(sa::sum(rnd::multinomial(key, 50, sa::array({0.2f, 0.3f, 0.5f}))).item<float>() == 50);
  CHECK(rnd::rademacher(key, {3}, sa::int8).dtype() == sa::int8);
  CHECK(std::isnan(rnd::binomial(key, 5, -1).item<float>()));
  CHECK(rnd::binomial(key, std::numeric_limits<double>::infinity(), 0.5).item<float>() ==
        std::numeric_limits<float>::infinity());
  const Array keys = rnd::split(key, 3),
              many = sa::vmap([](const Array&k) { return rnd::gamma(k, 2, {4}); })(keys);
  for (int k = 0; k < 3; k++) CHECK(golden::values(many[k]) == golden::values(rnd::gamma(keys[k], 2, {4})));
  // d/d scale of scale * z is z.
  const auto scaled = [&](const Array& s) { return rnd::rayleigh(key, s); };
  CHECK(sa::grad(scaled)(Array(2.0f)).item<float>() ==
        doctest::Approx(scaled(1.0).item<float>()).epsilon(1e-6));
}

TEST_CASE("distributions: JAX's derivatives of gamma and what is made of it, by its parameters") {
  const Array key = rnd::key(5);
  const std::map<std::string, std::function<Array(const Array& a)>> made{
      {"gamma", [&](const Array& a) { return rnd::gamma(key, a, {6}); }},
      {"loggamma", [&](const Array& a) { return rnd::loggamma(key, a, {6}); }},
      {"beta", [&](const Array& a) { return rnd::beta(key, a, 2.0, {6}); }},
      {"beta_b", [&](const Array& a) { return rnd::beta(key, 2.0, a, {6}); }},
      {"dirichlet",
       [&](const Array& a) {
         return rnd::dirichlet(key, sa::stack({a, a * 2, a / 2}), Shape{4})[{sa::all, 0}];
       }},
      {"chisquare", [&](const Array& a) { return rnd::chisquare(key, a, {6}); }},
      {"t", [&](const Array& a) { return rnd::t(key, a, {6}); }},
  };
  const Json printed = golden::load("gamma_slopes.json");
  for (const Json& row : printed["rows"]) {
    const std::string name = row["draw"];
    const auto a = row["a"].get<float>();
    CAPTURE(name);
    CAPTURE(a);
    const auto& draw = made.at(name);
    const auto [y, slope] = sa::jvp(draw, Array(a) * sa::ones({}), sa::ones({}));
    CHECK(golden::close(golden::values(y), row["values"].get<std::vector<double>>(), 1e-5));
    CHECK(golden::close(golden::values(slope), row["slopes"].get<std::vector<double>>(), 2e-4, 1e-6));
    const auto sum = [&](const Array& v) { return sa::sum(draw(v)); };
    double want = 0;
    for (const double v : golden::values(slope)) want += v;
    CHECK(sa::jit(sa::grad(sum))(Array(a) * sa::ones({})).item<float>() ==
          doctest::Approx(want).epsilon(1e-5));
  }
  // About a + z sqrt(a) where a is large, and u^(1 / a) where it is small.
  for (const double a : {1e6, 1e7, 1e9, 1e12}) {
    const Array large = sa::full({}, a), slopes = sa::jacfwd(made.at("gamma"))(large);
    const Array roots = (rnd::gamma(key, large, {6}) - large) / large;  // z / sqrt(a)
    CHECK(golden::close(golden::values(slopes), golden::values(1 + roots / 2), 2e-6));
  }
  const Array small = sa::full({}, 1e-4), logs = rnd::loggamma(key, small, {6});
  CHECK(golden::close(golden::values(sa::jacfwd(made.at("loggamma"))(small)), golden::values(-logs / 1e-4f),
                      1e-3));
  // NaN of what has none, and an end.
  for (const double a : {-1.0, std::nan(""), 0.0})
    CHECK(std::isnan(sa::sum(sa::jacfwd(made.at("gamma"))(sa::full({}, a))).item<float>()) == (a != 0));
  const auto first = sa::jacfwd(made.at("gamma"));
  CHECK(shardarray::testing::message_of<sa::Error>([&] {
          (void)sa::eval(sa::jacfwd(first)(sa::ones({})));
        }).find("grad: differentiation rule for 'the derivative of random::gamma' not implemented (") == 0);
  // One by one, and cut.
  const Array shapes = sa::linspace(0.2, 30, 16);
  const auto each = [&](const Array& s) { return sa::sum(rnd::gamma(key, s, {16})); };
  const Array cut = sa::device_put(shapes, sa::NamedSharding(sa::make_mesh({{"x", 8}}), P("x")));
  CHECK(golden::close(golden::values(sa::grad(each)(cut)), golden::values(sa::grad(each)(shapes)), 1e-6));
}

TEST_CASE("distributions: what is refused") {
  using sa::testing::message_of;
  const Array key = rnd::key(0), two = sa::ones({2});
  CHECK(
      message_of<sa::DTypeError>([&] { rnd::gamma(key, 1, {}, sa::int32); }) ==
      "random::gamma: dtype int32. It draws floating numbers. Choose float16, bfloat16, float32 or float64.");
  CHECK(message_of<sa::DTypeError>([&] { rnd::rademacher(key, {}, sa::uint8); }) ==
        "random::rademacher: dtype uint8. It draws -1 and 1. Choose a dtype with a sign.");
  CHECK(message_of<sa::DTypeError>([&] { rnd::poisson(key, 1, {}, sa::bool_); }) ==
        "random::poisson: dtype bool. It draws whole numbers. Choose an integer or floating dtype.");
  CHECK(message_of<sa::ShapeError>([&] { rnd::pareto(key, two, {3}); }).find("random::pareto: ") == 0);
  CHECK(message_of<sa::ShapeError>([&] {
          rnd::pareto(key, sa::ones({3, 2}), {2});
        }) ==
        "random::pareto: parameters of shape [3,2] for a draw of shape [2]. They are broadcast to the draw. "
        "Correct "
        "the shape.");
  CHECK(message_of<sa::ShapeError>([&] { rnd::dirichlet(key, 1); }) ==
        "random::dirichlet: alpha is i32[]. Its last dimension has the parts of a vector. Give it one.");
  CHECK(message_of<sa::ShapeError>([&] { rnd::multinomial(key, 1, 1); }) ==
        "random::multinomial: p is i32[]. Its last dimension has the probabilities. Give it one.");
  CHECK_THROWS_AS(rnd::beta(two, 1, 1), sa::DTypeError);
  CHECK_THROWS_AS(rnd::laplace(key, {-1}), sa::ShapeError);
}

}  // namespace distributions_test

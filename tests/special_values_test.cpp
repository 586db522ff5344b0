// Bessel functions, the gamma function and the exponential integral: true values, and SciPy's and JAX's edge cases. Numbers:
// data/special.json.
#include <cmath>

#include "golden.h"
#include "special_host.h"

namespace special_values_test {

namespace sa = shardarray;
using golden::Json;
using sa::Array;

namespace {

using Unary = std::function<Array(const Array&)>;
struct Bounded {
  std::string name;
  Unary function;
  double ulps;  ///< in float64
};
const Bounded functions[] = {{"i1", sa::i1, 10},
                             {"i0e", sa::i0e, 14},
                             {"i1e", sa::i1e, 14},
                             {"gamma", [](const Array& x) { return sa::gamma(x); }, 16},
                             {"exp1", sa::exp1, 8}};
constexpr double inf = std::numeric_limits<double>::infinity();

const Json& all_numbers() {
  static const Json all = golden::load("special.json");
  return all;
}
std::vector<double> list_of(const Json& list) {
  std::vector<double> r;
  for (const Json& v : list) r.push_back(golden::number(v));
  return r;
}
template <class T> double ulps_between(T got, long double want) {
  if (static_cast<long double>(got) == want || static_cast<T>(want) == got) return 0;
  int e = 0;
  std::frexp(std::fabs(want), &e);
  e = std::max(e, std::numeric_limits<T>::min_exponent);
  return static_cast<double>(std::fabs(got - want) / std::ldexp(1.0L, e - std::numeric_limits<T>::digits));
}
Array slope_at(const Unary& f, const Array& x) {
  return sa::grad([&](const Array& v) { return sa::sum(f(v)); })(x);
}
bool is_near(double got, double want) {
  return (std::isnan(got) && std::isnan(want)) || got == want ||
         std::abs(got - want) <= 1e-12 * std::abs(want) + 1e-16;
}

}  // namespace

TEST_CASE("special: i1, i0e, i1e, gamma and exp1 keep their bounds in float64") {
  for (const auto& [name, f, bound] : functions) {
    const Json& numbers = all_numbers()["true"][name];
    const std::vector<double> x = list_of(numbers["x"]), want = list_of(numbers["y"]);
    const std::vector<double> got = golden::values(f(sa::array(x)));
    for (std::size_t k = 0; k < x.size(); k++) {
      const auto& function = name;
      CAPTURE(function);
      CAPTURE(x[k]);
      CHECK(ulps_between(got[k], want[k]) <= bound);
    }
  }
  double product = 1;
  for (int k = 1; k <= 23; product *= k++)
    CHECK(sa::gamma(sa::array({double(k)}, sa::float64))[0].item<double>() == product);
}

TEST_CASE("special: i1, i0e, i1e, gamma and exp1 of float32 are rounded once") {
  std::vector<float> x;
  for (int k = 1; k < 3000; k++) x.push_back(static_cast<float>(k) / 97);
  const auto check = [](const Unary& f, const std::vector<float>& at, long double (*want)(long double)) {
    const auto got = f(sa::array(at)).to_vector<float>();
    double worst = 0;
    for (std::size_t k = 0; k < at.size(); k++) worst = std::max(worst, ulps_between(got[k], want(at[k])));
    CHECK(worst <= 0.51);
  };
  using sa::testing::bessel_i_of;
  check(sa::i1, x, [](long double v) { return bessel_i_of(1, v); });
  check(sa::i0e, x, [](long double v) { return bessel_i_of(0, v) * std::exp(-v); });
  check(sa::i1e, x, [](long double v) { return bessel_i_of(1, v) * std::exp(-v); });
  check([](const Array& v) { return sa::gamma(v); }, x, [](long double v) { return std::tgamma(v); });
  check(sa::exp1, x, sa::testing::exp1_of);
  for (float& v : x) v = -v / 10 - 1e-3F;
  check([](const Array& v) { return sa::gamma(v); }, x, [](long double v) { return std::tgamma(v); });
  check(sa::i1e, x, [](long double v) { return bessel_i_of(1, v) * std::exp(v); });
}

TEST_CASE("special: i1, i0e, i1e, gamma and exp1 have SciPy's edges and JAX's slopes there") {
  // What is not taken over: infinities on the way to a limit, and a number for NaN.
  const auto is_other = [](const std::string& name, double x, bool slope) {
    if (name == "i1") return std::isinf(x) || (slope && std::abs(x) > 700);
    if (name == "gamma" && x == -171.25) return true;   // SciPy's 0 is a denormal
    if (name == "exp1") return slope && std::isinf(x);  // JAX's never ends there
    return slope && name == "i1e" && std::isnan(x);
  };
  for (const auto& [name, f, bound] : functions) {
    const Json& numbers = all_numbers()["edges"][name];
    const std::vector<double> x = list_of(numbers["x"]), want = list_of(numbers["scipy"]),
                              slopes = list_of(numbers["slopes"]);
    const std::vector<double> got = golden::values(f(sa::array(x))),
                              got_slopes = golden::values(slope_at(f, sa::array(x)));
    for (std::size_t k = 0; k < x.size(); k++) {
      const auto& function = name;
      CAPTURE(function);
      CAPTURE(x[k]);
      if (!is_other(name, x[k], false)) CHECK(is_near(got[k], want[k]));
      if (!is_other(name, x[k], true)) CHECK(is_near(got_slopes[k], slopes[k]));
    }
  }
  CHECK(golden::values(sa::i1(sa::array({inf, -inf}, sa::float64))) == std::vector{inf, -inf});
  CHECK(std::isnan(golden::values(sa::exp1(sa::array({-1.0})))[0]));  // SciPy: -Ei(1)
  CHECK(golden::values(slope_at(sa::exp1, sa::array({inf}, sa::float64)))[0] == 0);
  CHECK(std::isnan(golden::values(slope_at(sa::exp1, sa::array({-1.0})))[0]));
  CHECK(std::signbit(golden::values(sa::gamma(sa::array({-0.0})))[0]));
  CHECK(golden::values(sa::gamma(sa::array({35.03F, 35.05F})))[1] == inf);
  CHECK(std::isfinite(golden::values(sa::gamma(sa::array({35.03F, 35.05F})))[0]));
}

TEST_CASE("special: second derivatives, dtypes and messages") {
  const auto second = [](const Unary& f, double x) {
    const auto slope = [&](const Array& v) { return slope_at(f, v); };
    return golden::values(slope_at(slope, sa::array({x}, sa::float64)))[0];
  };
  const auto first = [](const Unary& f, double x) {
    return golden::values(slope_at(f, sa::array({x}, sa::float64)))[0];
  };
  for (const auto& [name, f, bound] : functions)
    for (const double x : {0.7, 2.5}) {
      const auto& function = name;
      CAPTURE(function);
      CHECK(second(f, x) == doctest::Approx((first(f, x + 1e-5) - first(f, x - 1e-5)) / 2e-5).epsilon(1e-6));
    }
  for (const auto& [name, f, bound] : functions) {
    const auto& function = name;
    CAPTURE(function);
    CHECK(f(sa::array({1, 2})).dtype() == sa::float32);
    CHECK(f(sa::ones(2, sa::int64)).dtype() == sa::float64);
    for (const sa::DType t : {sa::float16, sa::bfloat16}) {
      const Array x = sa::array({0.5, 2.25}).astype(t);
      CHECK(f(x).dtype() == t);
      CHECK(sa::array_equal(f(x), f(x.astype(sa::float32)).astype(t)));
    }
    CHECK_THROWS_AS((void)f(sa::ones(2, sa::complex64)), sa::DTypeError);
  }
}

}  // namespace special_values_test

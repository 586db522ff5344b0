// Derivatives of elementwise functions at points where an intermediate is infinite.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "shardarray/shardarray.h"

namespace elementwise_slopes_test {

namespace sa = shardarray;
using sa::Array;
using Unary = std::function<Array(const Array&)>;

namespace {

Array slope_of(const Unary& f, const Array& x) {
  return sa::grad([&](const Array& v) { return sa::sum(f(v)); })(x);
}

}  // namespace

// JAX's, or the limits of the true ones: an intermediate that is infinite must not show.
TEST_CASE("elementwise: slopes of x^0 are 0 in every dtype") {
  for (const sa::DType t :
       {sa::float16, sa::bfloat16, sa::float32, sa::float64, sa::complex64, sa::complex128}) {
    CAPTURE(sa::name(t));
    // The logarithm of smaller complex numbers has no slope that is a number.
    const bool complex = sa::is_complex(t);
    const Array at = sa::array({0.0, 1e-5, complex ? 1e-9 : 1e-30, complex ? 1e-12 : 1e-40,
                                complex ? 1e-15 : 1e-310, 2.0, -2.0})
                         .astype(t);
    const Array zeros[] = {sa::zeros(7, t), sa::zeros(7, sa::int32)};
    for (const Array& zero : zeros) {
      const Array slope = sa::grad([&](const Array& v) { return sa::sum(sa::real(sa::power(v, zero))); })(at);
      CHECK(sa::real(slope).astype(sa::float64).to_vector<double>() == std::vector<double>(7, 0));
    }
  }
}

TEST_CASE("elementwise: slopes at 0, at infinities and at large numbers") {
  const double inf = INFINITY;
  for (const sa::DType t : {sa::float32, sa::float64}) {
    CAPTURE(sa::name(t));
    const double large = t == sa::float32 ? 1e20 : 1e160;
    const auto slopes = [&](const Unary& f, const std::vector<double>& at) {
      return slope_of(f, sa::array(at).astype(t)).astype(sa::float64).to_vector<double>();
    };
    const auto second = [&](const Unary& f, const std::vector<double>& at) {
      return slopes([&](const Array& v) { return slope_of(f, v); }, at);
    };
    using Slopes = std::vector<double>;
    for (int n = 1; n <= 9; n++) {
      CAPTURE(n);
      const auto inverse = [&](const Array& v) { return sa::power(v, -n); };
      const Slopes at = {inf, -inf, large, -large, 0.0, -0.0, 2.0, -2.0};
      const Slopes got = slopes(inverse, at);
      const double to_left = n % 2 == 0 ? inf : -inf;
      for (const std::size_t k : {0, 1}) CHECK(got[k] == 0);
      for (const std::size_t k : {2, 3}) CHECK(got[k] == doctest::Approx(-n * std::pow(at[k], -n - 1)));
      CHECK(got[4] == -inf);
      CHECK(got[5] == to_left);
      for (const std::size_t k : {6, 7}) CHECK(got[k] == doctest::Approx(-n * std::pow(at[k], -n - 1)));
      const Slopes twice = second(inverse, {inf, 2.0, 0.0});
      CHECK(twice[0] == 0);
      CHECK(twice[1] == doctest::Approx(n * (n + 1) * std::pow(2.0, -n - 2)));
      CHECK(twice[2] == inf);
    }
    for (const bool is_array : {false, true}) {
      const Array zero = is_array ? sa::zeros({}, t) : Array(0.0);
      CHECK(slopes([&](const Array& v) { return sa::power(v, zero); }, {inf, -inf, 0, -0.0, 1e-40, 3, -3}) ==
            Slopes(7, 0));
    }
    // d/dx d/dy x^y at y = 0 is 1 / x
    const auto mixed = [&](double x) {
      const auto in_y = [&](const Array& v) {
        return sa::grad([&](const Array& y) { return sa::sum(sa::power(v, y)); })(sa::zeros({}, t));
      };
      return sa::grad(in_y)(sa::full({}, x, t)).astype(sa::float64).item<double>();
    };
    CHECK(mixed(4) == doctest::Approx(0.25));
    for (const int decimals : {-1, 1, 3})
      CHECK(slopes([&](const Array& v) { return sa::round(v, decimals); },
                   {1.23, large * large, inf, -inf, NAN}) == Slopes(5, 0));
    for (const double by : {0.0, -0.0, 2.0, inf})
      CHECK(slopes([&](const Array& v) { return sa::floor_divide(v, by); }, {1, -1, 0, 7}) == Slopes(4, 0));
    for (const double v : second(sa::softplus, {inf, -inf, 2000, -2000})) CHECK(v == 0);
    for (const double v : second(sa::log_sigmoid, {inf, -inf, 2000, -2000})) CHECK(v == 0);
    for (const double v : second([](const Array& v) { return sa::logaddexp(v, 0); }, {inf, 2000, -2000}))
      CHECK(v == 0);
    for (const double v : second([](const Array& v) { return sa::logaddexp2(0, v); }, {inf, 2000, -2000}))
      CHECK(v == 0);
    CHECK(second(sa::softplus, {0})[0] == doctest::Approx(0.25));
  }
}

// JAX 0.10.2: lax.clamp gives nothing to what stands at an end, jnp.clip a half.
TEST_CASE("elementwise: slopes of clamp and of clip at their ends") {
  const Array x = sa::array({-2.0, -1.0, 0.0, 2.0, 3.0});
  CHECK(slope_of([](const Array& v) { return sa::clamp(-1.0, v, 2.0); }, x).to_vector<double>() ==
        std::vector<double>{0, 0, 1, 0, 0});
  CHECK(slope_of([](const Array& v) { return sa::clip(v, -1.0, 2.0); }, x).to_vector<double>() ==
        std::vector<double>{0, 0.5, 1, 0.5, 0});
  const auto of_low = [&](const Array& low) { return sa::clamp(low, x, 2.0); };
  const auto of_high = [&](const Array& high) { return sa::clamp(-1.0, x, high); };
  CHECK(slope_of(of_low, sa::full({5}, -1.0)).to_vector<double>() == std::vector<double>{1, 0, 0, 0, 0});
  CHECK(slope_of(of_low, Array(-1.0)).item<double>() == 1);
  CHECK(slope_of(of_high, sa::full({5}, 2.0)).to_vector<double>() == std::vector<double>{0, 0, 0, 0, 1});
  CHECK(sa::jvp([](const Array& v) { return sa::clamp(-1.0, v, 2.0); }, x, sa::ones({5}))
            .second.to_vector<double>() == std::vector<double>{0, 0, 1, 0, 0});
}

TEST_CASE("elementwise: second slopes where the first ones are infinite") {
  const double infinite = std::numeric_limits<double>::infinity();
  const auto second = [](const Unary& f, const Array& x) {
    return slope_of([&](const Array& v) { return slope_of(f, v); }, x).to_vector<double>();
  };
  const Array ends = sa::array({-1.0, 0.5, 1.0}, sa::float64);
  const double middle = 0.5 / std::pow(0.75, 1.5);
  const std::vector<double> sines = second(sa::arcsin, ends), cosines = second(sa::arccos, ends);
  for (const std::size_t k : {0u, 2u}) {
    CHECK(std::abs(sines[k]) == infinite);  // JAX: -inf at both
    CHECK(std::abs(cosines[k]) == infinite);
  }
  CHECK(sines[1] == doctest::Approx(middle).epsilon(1e-14));
  CHECK(cosines[1] == doctest::Approx(-middle).epsilon(1e-14));
  // -2/9 x^(-5/3)
  const std::vector<double> roots =
      second(sa::cbrt, sa::array({0.0, infinite, -infinite, 8.0, -8.0}, sa::float64));
  CHECK(std::abs(roots[0]) == infinite);
  CHECK(roots[1] == 0);
  CHECK(roots[2] == 0);
  CHECK(roots[3] == doctest::Approx(-1.0 / 144).epsilon(1e-14));
  CHECK(roots[4] == doctest::Approx(1.0 / 144).epsilon(1e-14));
}

// JAX 0.10.2 and NumPy's logarithms in float64.
TEST_CASE("elementwise: relative entropies of numbers whose quotient has no digits") {
  const std::vector<double> p = {1e10, 1e-30, 1e-25, 10, 1e-38, 3e36, 2},
                            q = {1e-30, 1e20, 1e25, 1.2e-38, 1, 1, 3};
  for (const sa::DType t : {sa::float32, sa::bfloat16, sa::float64}) {
    CAPTURE(sa::name(t));
    std::vector<double> a = p, b = q;
    if (t == sa::float64)
      for (std::size_t k = 0; k < a.size(); k++) a[k] = std::pow(a[k], 7.5), b[k] = std::pow(b[k], 7.5);
    const Array x = sa::array(a, sa::float64).astype(t), y = sa::array(b, sa::float64).astype(t);
    a = x.astype(sa::float64).to_vector<double>();
    b = y.astype(sa::float64).to_vector<double>();
    const double bound = t == sa::bfloat16 ? 1e-2 : t == sa::float32 ? 3e-6 : 1e-14;
    const auto values_of = [&](const Array& v) { return v.astype(sa::float64).to_vector<double>(); };
    const auto entropy = values_of(sa::rel_entr(x, y)), divergence = values_of(sa::kl_div(x, y)),
               by_p = values_of(slope_of([&](const Array&v) { return sa::rel_entr(v, y); }, x)),
               by_q = values_of(slope_of([&](const Array&v) { return sa::rel_entr(x, v); }, y));
    for (std::size_t k = 0; k < a.size(); k++) {
      CAPTURE(k);
      const double logarithm = std::log(a[k]) - std::log(b[k]);
      CHECK(entropy[k] == doctest::Approx(a[k] * logarithm).epsilon(bound));
      CHECK(divergence[k] == doctest::Approx(a[k] * logarithm - a[k] + b[k]).epsilon(10 * bound));
      CHECK(by_p[k] == doctest::Approx(logarithm + 1).epsilon(bound));
      if (a[k] / b[k] < 1e30) CHECK(by_q[k] == doctest::Approx(-a[k] / b[k]).epsilon(bound));
    }
  }
}

}  // namespace elementwise_slopes_test

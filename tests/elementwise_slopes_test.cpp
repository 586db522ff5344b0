// Slopes of elementwise functions where something on the way to them is infinite.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
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

}  // namespace elementwise_slopes_test

// Special functions and logarithms compared with true values: error bounds over the whole range. Numbers: data/elementwise.json.
#include <cmath>

#include "golden.h"
#include "special_host.h"

namespace special_test {

namespace sa = shardarray;
using golden::Json;
using sa::Array;

namespace {

const Json& true_values() {
  static const Json all = golden::load("elementwise.json");
  return all["true"];
}
std::vector<double> numbers(const Json& list) {
  std::vector<double> r;
  for (const Json& v : list) r.push_back(golden::number(v));
  return r;
}
template <class F> Array slope_of(const F& f, const Array& x) {
  return sa::grad([&](const Array& v) { return sa::sum(f(v)); })(x);
}
/// The largest |got - want| / max(|want|, 1, |x|).
double worst_error(const Array& got, const std::vector<double>& want, const std::vector<double>& x) {
  const std::vector<double> g = golden::values(got);
  double worst = 0;
  for (std::size_t k = 0; k < g.size(); k++)
    if (g[k] != want[k])
      worst = std::max(worst, std::abs(g[k] - want[k]) / std::max({std::abs(want[k]), 1.0, std::abs(x[k])}));
  return worst;
}
template <class T> double ulps_of(T got, long double want) {
  if (static_cast<long double>(got) == want || static_cast<T>(want) == got) return 0;
  int e = 0;
  std::frexp(std::fabs(want), &e);
  e = std::max(e, std::numeric_limits<T>::min_exponent);
  return static_cast<double>(std::fabs(got - want) / std::ldexp(1.0L, e - std::numeric_limits<T>::digits));
}
}  // namespace

TEST_CASE("elementwise: gamma and Bessel functions have their true values, and derivatives") {
  const Json& gamma = true_values()["gamma"];
  const std::vector<double> x = numbers(gamma["x"]);
  const Array wide = sa::array(x);
  const auto trigamma = [](const Array& v) { return slope_of(sa::digamma, v); };
  CHECK(worst_error(sa::digamma(wide), numbers(gamma["digamma"]), x) < 1e-14);
  CHECK(worst_error(slope_of(sa::lgamma, wide), numbers(gamma["digamma"]), x) < 1e-14);
  CHECK(worst_error(trigamma(wide), numbers(gamma["trigamma"]), x) < 1e-13);
  CHECK(worst_error(slope_of(trigamma, wide), numbers(gamma["tetragamma"]), x) < 1e-12);
  const Json& bessel = true_values()["bessel"];
  const std::vector<double> b = numbers(bessel["x"]);
  const std::vector<double> i0 = golden::values(sa::i0(sa::array(b))),
                            i1 = golden::values(slope_of(sa::i0, sa::array(b)));
  for (std::size_t k = 0; k < b.size(); k++) {
    CAPTURE(b[k]);
    CHECK(ulps_of(i0[k], golden::number(bessel["i0"][k])) <= 8);
    CHECK(ulps_of(i1[k], golden::number(bessel["i1"][k])) <= 10);
  }
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(sa::i0(sa::array({-inf}, sa::float64))[0].item<double>() == inf);
  for (const double far : {720.0, 2000.0, 3e3, 2.9e307, -1.7e308}) {  // beyond what is finite
    CHECK(sa::i0(sa::array({far}, sa::float64))[0].item<double>() == inf);
    CHECK(golden::values(slope_of(sa::i0, sa::array({far}, sa::float64)))[0] == std::copysign(inf, far));
  }
}

TEST_CASE("elementwise: gamma and Bessel functions of float32 are rounded once") {
  std::vector<float> x;
  for (int k = 1; k < 4000; k++) x.push_back(static_cast<float>(k) / 97);
  const auto digamma = sa::digamma(sa::array(x)).to_vector<float>(),
             i0 = sa::i0(sa::array(x)).to_vector<float>(),
             lgamma = sa::lgamma(sa::array(x)).to_vector<float>();
  double worst = 0;
  for (std::size_t k = 0; k < x.size(); k++) {
    worst = std::max(worst, ulps_of(digamma[k], sa::testing::digamma_of(x[k])));
    worst = std::max(worst, ulps_of(i0[k], sa::testing::bessel_i0_of(x[k])));
    worst = std::max(worst, ulps_of(lgamma[k], std::lgamma(static_cast<long double>(x[k]))));
  }
  CHECK(worst <= 0.51);
}

TEST_CASE("elementwise: ndtri and logaddexp keep their bounds") {
  std::vector<float> p;
  std::vector<double> wide;
  for (int k = 1; k < 2000; k++) p.push_back(static_cast<float>(k) / 2000), wide.push_back(k / 2000.0);
  for (int k = 2; k < 148; k++) p.push_back(std::ldexp(1.37f, -k));
  for (int k = 2; k < 24; k++) p.push_back(1 - std::ldexp(1.0f, -k));
  for (int k = 2; k < 1070; k += 3) wide.push_back(std::ldexp(1.37, -k));
  const auto got = sa::ndtri(sa::array(p)).to_vector<float>();
  const auto got_wide = sa::ndtri(sa::array(wide)).to_vector<double>();
  double worst = 0, worst_wide = 0;
  for (std::size_t k = 0; k < p.size(); k++)
    worst = std::max(worst, ulps_of(got[k], sa::testing::normal_quantile(p[k])));
  for (std::size_t k = 0; k < wide.size(); k++)
    worst_wide = std::max(worst_wide, ulps_of(got_wide[k], sa::testing::normal_quantile(wide[k])));
  CHECK(worst <= 4);
  CHECK(worst_wide <= 8);

  std::vector<float> a, b;
  for (int i = -60; i < 60; i++)
    for (int k = -60; k < 60; k++)
      a.push_back(static_cast<float>(i) / 3), b.push_back(static_cast<float>(k) / 7);
  const auto e = sa::logaddexp(sa::array(a), sa::array(b)).to_vector<float>(),
             two = sa::logaddexp2(sa::array(a), sa::array(b)).to_vector<float>();
  double far = 0;
  for (std::size_t k = 0; k < a.size(); k++) {
    const long double x = a[k], y = b[k], want = std::log(std::exp(x) + std::exp(y)),
                      want2 = std::log2(std::exp2(x) + std::exp2(y));
    far = std::max(far, static_cast<double>(std::fabs(e[k] - want) / std::max(1.0L, std::fabs(want))));
    far = std::max(far, static_cast<double>(std::fabs(two[k] - want2) / std::max(1.0L, std::fabs(want2))));
  }
  CHECK(far <= 4 * 0x1p-23);
}

TEST_CASE("elementwise: logarithms of whole powers are whole, of 1/2 logit has all digits") {
  std::vector<double> tens, twos;
  for (int k = -1074; k < 1024; k++) twos.push_back(std::ldexp(1.0, k));
  const auto exponents = sa::log2(sa::array(twos)).to_vector<double>();
  for (std::size_t k = 0; k < twos.size(); k++) CHECK(exponents[k] == static_cast<double>(k) - 1074);
  std::vector<float> short_tens;
  for (int k = 0; k <= 22; k++) tens.push_back(std::pow(10.0, k));
  for (int k = 0; k <= 10; k++) short_tens.push_back(static_cast<float>(std::pow(10.0, k)));
  const auto logs = sa::log10(sa::array(tens)).to_vector<double>();
  for (std::size_t k = 0; k < tens.size(); k++) CHECK(logs[k] == static_cast<double>(k));
  const auto short_logs = sa::log10(sa::array(short_tens)).to_vector<float>();
  for (std::size_t k = 0; k < short_tens.size(); k++) CHECK(short_logs[k] == static_cast<float>(k));
  for (const float d : {0x1p-20f, -0x1p-20f, 0x1.8p-12f})
    CHECK(sa::logit(sa::array({0.5f + d}))[0].item<float>() == doctest::Approx(4.0 * d).epsilon(1e-6));
}

}  // namespace special_test

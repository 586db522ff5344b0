// Elementary functions of float64 that are expanded into arithmetic, against the C library's in long double.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "shardarray/shardarray.h"

namespace expand_double_test {

namespace sa = shardarray;
using sa::Array;

namespace {

struct Function {
  const char* name;
  Array (*ours)(const Array&);
  long double (*wanted)(long double);
  double ulps;
};
/// Every binary exponent, ranges that matter, borders of overflow, special values.
std::vector<double> arguments() {
  std::mt19937_64 random(1);
  const auto between = [&](double lo, double hi) {
    return std::uniform_real_distribution<double>(lo, hi)(random);
  };
  std::vector<double> x;
  for (int k = 0; k < 40'000; k++) {
    x.push_back(between(-745, 709.7));
    x.push_back(between(-1, 1));
    x.push_back(between(-40, 40));
  }
  for (int e = -1074; e < 10; e++)
    for (const double sign : {-1.0, 1.0}) x.push_back(sign * std::ldexp(between(1, 2), e));
  for (const double border : {0.0, 709.782712893384, 709.79, 710.4758600739439, 710.48, 745.13, 745.2, 746.0,
                              1e300, std::numeric_limits<double>::infinity()})
    for (const double sign : {-1.0, 1.0}) x.push_back(sign * border);
  x.push_back(std::numeric_limits<double>::quiet_NaN());
  return x;
}

}  // namespace

TEST_CASE("functions: exponentials of float64 are as close as the C library's") {
  const Function functions[] = {
      {"exp", [](const Array& a) { return sa::exp(a); }, [](long double v) { return std::exp(v); }, 1},
      {"expm1", [](const Array& a) { return sa::expm1(a); }, [](long double v) { return std::expm1(v); }, 1.5},
      {"sinh", [](const Array& a) { return sa::sinh(a); }, [](long double v) { return std::sinh(v); }, 2.5},
      {"cosh", [](const Array& a) { return sa::cosh(a); }, [](long double v) { return std::cosh(v); }, 2},
      {"tanh", [](const Array& a) { return sa::tanh(a); }, [](long double v) { return std::tanh(v); }, 2},
  };
  const std::vector<double> x = arguments();
  for (const Function& f : functions) {
    CAPTURE(f.name);
    const std::vector<double> got = f.ours(sa::array(x)).to_vector<double>();
    double worst = 0;
    int wrong = 0;  // special values
    for (std::size_t k = 0; k < x.size(); k++) {
      const long double want = f.wanted(x[k]);
      const auto nearest = static_cast<double>(want);
      if (std::isnan(nearest) || std::isinf(nearest) || nearest == 0) {
        wrong += !(std::isnan(nearest) ? std::isnan(got[k])
                                       : got[k] == nearest && std::signbit(got[k]) == std::signbit(nearest));
        continue;
      }
      const double size = std::abs(nearest),
                   ulp = std::nextafter(size, std::numeric_limits<double>::infinity()) - size;
      worst = std::max(worst, static_cast<double>(std::abs(got[k] - want) / ulp));
    }
    CHECK(wrong == 0);
    CHECK(worst <= f.ulps);
  }
}

}  // namespace expand_double_test

// Every function of one complex number whose parts are 0, tiny, large, so large that squares and exponentials overflow, infinite or
// NaN: values and derivatives compared with C's long double functions (complex_truth.h), quotients with C's and JAX's.
#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "complex_truth.h"
#include "shardarray/shardarray.h"

namespace complex_specials_test {

namespace sa = shardarray;
namespace truth = complex_truth;
using sa::Array;
using truth::Part;
using truth::Z;
using Number = std::complex<double>;
using Numbers = std::vector<Number>;

namespace {

constexpr Part ln2 = std::numbers::ln2_v<Part>, ln10 = std::numbers::ln10_v<Part>;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Row {
  std::string name;
  Array (*f)(const Array&);
  Z (*value)(Z);
  Z (*slope)(Z);
  /// A bound of the result's error, in ulps of its size and of the size of z.
  double ulp = 16, ulp_of_z = 0;
  /// Has C's values, and its derivatives, where both parts are infinite, too.
  bool has_corners = true;
  /// Has poles, where it is infinite as soon as the square of a distance is 0.
  bool has_poles = false;
};
#define LIBRARY(name) #name, [](const Array& z) { return sa::name(z); }
const std::vector<Row> rows = {
    {LIBRARY(exp), [](Z z) { return std::exp(z); }, [](Z z) { return std::exp(z); }, 16, 0, false},
    {LIBRARY(expm1), truth::expm1, [](Z z) { return std::exp(z); }, 16, 0, false},
    // y ln 2 is rounded
    {LIBRARY(exp2), truth::exp2, [](Z z) { return ln2 * truth::exp2(z); }, 16, 1, false},
    {LIBRARY(log), [](Z z) { return std::log(z); }, [](Z z) { return truth::over(1, z); }},
    {LIBRARY(log1p), truth::log1p, [](Z z) { return truth::over(1, truth::plus_one(z)); }},
    {LIBRARY(log2), [](Z z) { return std::log(z) / ln2; }, [](Z z) { return truth::over(1 / ln2, z); }},
    {LIBRARY(log10), [](Z z) { return std::log(z) / ln10; }, [](Z z) { return truth::over(1 / ln10, z); }},
    {LIBRARY(sqrt), [](Z z) { return std::sqrt(z); }, [](Z z) { return truth::over(0.5L, std::sqrt(z)); }},
    {LIBRARY(rsqrt), [](Z z) { return truth::over(1, std::sqrt(z)); },
     [](Z z) { return -0.5L * truth::over_both(z, std::sqrt(z)); }},
    {LIBRARY(sin), [](Z z) { return std::sin(z); }, [](Z z) { return std::cos(z); }},
    {LIBRARY(cos), [](Z z) { return std::cos(z); }, [](Z z) { return -std::sin(z); }},
    {LIBRARY(sinh), [](Z z) { return std::sinh(z); }, [](Z z) { return std::cosh(z); }},
    {LIBRARY(cosh), [](Z z) { return std::cosh(z); }, [](Z z) { return std::sinh(z); }},
    {LIBRARY(tan), [](Z z) { return std::tan(z); },
     [](Z z) { return truth::sech_squared(truth::times_i(z)); }},
    {LIBRARY(tanh), [](Z z) { return std::tanh(z); }, truth::sech_squared},
    {LIBRARY(arcsin), [](Z z) { return std::asin(z); }, truth::asin_slope},
    {LIBRARY(arccos), [](Z z) { return std::acos(z); }, [](Z z) { return -truth::asin_slope(z); }},
    {LIBRARY(arcsinh), [](Z z) { return std::asinh(z); },
     [](Z z) { return truth::asin_slope(truth::times_i(z)); }},
    {LIBRARY(arccosh), [](Z z) { return std::acosh(z); },
     [](Z z) { return truth::over_both(std::sqrt(-truth::one_minus(z)), std::sqrt(truth::plus_one(z))); }},
    {LIBRARY(arctanh), [](Z z) { return std::atanh(z); }, truth::atanh_slope, 16, 0, true, true},
    {LIBRARY(arctan), [](Z z) { return std::atan(z); },
     [](Z z) { return truth::atanh_slope(truth::times_i(z)); }, 16, 0, true, true},
    {LIBRARY(sigmoid), truth::logistic, [](Z z) { return truth::logistic(z) * truth::logistic(-z); }, 16, 0,
     false},
    {LIBRARY(silu), [](Z z) { return z * truth::logistic(z); },
     [](Z z) { return truth::logistic(z) + z * (truth::logistic(z) * truth::logistic(-z)); }, 16, 0, false},
    {LIBRARY(square),
     [](Z z) { return Z((z.real() - z.imag()) * (z.real() + z.imag()), 2 * z.real() * z.imag()); },
     [](Z z) { return Part(2) * z; }},
    {LIBRARY(reciprocal), [](Z z) { return truth::over(1, z); }, [](Z z) { return -truth::over_both(z, z); },
     16, 0, false},
};
#undef LIBRARY

template <class T> std::vector<T> parts() {
  const bool is_float = sizeof(T) == 4;
  const T most = std::numeric_limits<T>::max();
  std::vector<T> r = {0, T(1e-30), T(1e-5), T(0.5), T(0.9999), 1, T(1.0001), 2, 30, T(1e4), T(1e9), T(1e18)};
  // before and behind the overflow of exponentials, and of squares
  for (const double x : is_float ? std::vector<double>{88.5, 89.5, 104, 200, 2e19, 1e30, 1e38}
                                 : std::vector<double>{709, 711, 750, 2000, 1e30, 1e153, 2e154, 1e300})
    r.push_back(T(x));
  r.push_back(most / 2);
  r.push_back(most);
  r.push_back(T(infinity));
  for (std::size_t k = 0, n = r.size(); k < n; k++) r.push_back(-r[k]);
  r.push_back(T(nan));
  return r;
}
template <class T> std::vector<std::complex<T>> grid() {
  std::vector<std::complex<T>> r;
  for (const T re : parts<T>())
    for (const T im : parts<T>()) r.emplace_back(re, im);
  return r;
}

/// Is the part `got` the one that is wanted, rounded to T?
template <class T> bool is_near(double got, Part want, Part bound) {
  const T rounded = static_cast<T>(want);
  if (std::isinf(rounded)) return got == static_cast<double>(rounded);
  return std::abs(static_cast<Part>(got) - want) <= bound;
}
/// Digits below the smallest normal number, times the scale, do not count.
template <class T> bool is_near(Number got, Z want, double ulp, Part scale) {
  const auto size = [](Part x) { return std::isfinite(x) ? std::abs(x) : 0; };
  const Part bound = ulp * std::numeric_limits<T>::epsilon() * (size(want.real()) + size(want.imag())) +
                     std::numeric_limits<T>::min() * scale;
  return is_near<T>(got.real(), want.real(), bound) && is_near<T>(got.imag(), want.imag(), bound);
}
bool has_nan(Z z) { return std::isnan(z.real()) || std::isnan(z.imag()); }
template <class T> bool is_held(Z z) {
  return std::isfinite(static_cast<T>(z.real())) && std::isfinite(static_cast<T>(z.imag()));
}
std::string text(Z z) {
  std::ostringstream s;
  s << z;
  return s.str();
}

/// What f gives at all z, and the gradients of its real and imaginary parts: f' and -i f'.
struct Found {
  Numbers values, by_real, by_imag;
  Found(Array (*f)(const Array&), const Array& z) : values(f(z).to_vector<Number>()) {
    by_real = sa::grad([&](const Array& x) { return sa::sum(sa::real(f(x))); })(z).to_vector<Number>();
    by_imag = sa::grad([&](const Array& x) { return sa::sum(sa::imag(f(x))); })(z).to_vector<Number>();
  }
};

template <class T> void check_row(const Row& row) {
  const auto at = grid<T>();
  const Found found(row.f, sa::array(at));
  const std::string name = row.name + " of " + std::to_string(8 * sizeof(T)) + " bits";
  const bool is_sigmoid = row.name == "sigmoid" || row.name == "silu";  // with poles on a line
  int wrong = 0;
  const auto expect = [&](Number got, Z want, double ulp, Z z, const char* what) {
    const Part scale = is_sigmoid && truth::is_finite(z) ? std::max<Part>(1, std::abs(z)) : 1;
    if (is_near<T>(got, want, ulp, scale) || ++wrong > 3) return;  // the first three say enough
    FAIL_CHECK(name << std::string(what) << " at " << text(z) << ": " << text(Z(got)) << ", not "
                    << text(want));
  };
  for (std::size_t k = 0; k < at.size(); k++) {
    const Z z(at[k]), value = row.value(z), slope = row.slope(z);
    if (has_nan(z) || (!row.has_corners && std::isinf(z.real()) && std::isinf(z.imag()))) continue;
    const double of_z = row.ulp_of_z == 0 ? 0 : row.ulp_of_z * static_cast<double>(std::abs(z.imag()));
    const double near_pole =
        is_sigmoid ? std::max(1.0, static_cast<double>(std::abs(truth::logistic(z)))) : 1;
    const double ulp = (row.ulp + of_z) * near_pole;
    if (row.ulp_of_z != 0 && !(ulp * std::numeric_limits<T>::epsilon() < 0.1)) continue;
    const bool at_pole = row.has_poles && std::abs(slope) > 0.2L / std::sqrt(std::numeric_limits<T>::min());
    if (!has_nan(value) && !at_pole) expect(found.values[k], value, ulp, z, "");
    if (!is_held<T>(slope)) continue;
    expect(found.by_real[k], slope, 3 * ulp, z, ", gradient of the real part");
    expect(found.by_imag[k], Z(slope.imag(), -slope.real()), 3 * ulp, z, ", gradient of the imaginary part");
  }
  CHECK_MESSAGE(wrong == 0, name << ": " << wrong << " wrong");
}

}  // namespace

TEST_CASE(
    "complex: every function has C's values and its own derivatives, however large or small the parts are") {
  for (const Row& row : rows) {
    check_row<float>(row);
    check_row<double>(row);
  }
}

TEST_CASE("complex: second derivatives of the same functions") {
  const Numbers at = {{0.3, 0.4}, {-2, 1},   {3, -2},  {1.5, 20}, {20, 1.5},  {-95, 2},
                      {2, 95},    {-800, 2}, {2, 800}, {1e20, 3}, {-3, 1e200}};
  const Array z = sa::array(at);
  for (const Row& row : rows) {
    const auto sum = [](const Array& x) { return sa::sum(sa::real(x)); };
    const auto slope = [&](const Array& x) {
      return sum(sa::grad([&](const Array& y) { return sum(row.f(y)); })(x));
    };
    const auto found = sa::grad(slope)(z).to_vector<Number>();
    for (std::size_t k = 0; k < at.size(); k++) {
      const Z x(at[k]);
      const Part step = 1e-6L * std::max<Part>(1, std::abs(x) > 1000 ? std::abs(x) : 1);
      const Z got = row.slope(x), want = (row.slope(x + step) - row.slope(x - step)) / (2 * step);
      const bool is_smooth = std::abs(row.slope(x + step) - got) <= 1e-3L * std::abs(got);
      if (!is_held<double>(want) || !is_smooth) continue;
      CHECK_MESSAGE(
          std::abs(Z(found[k]) - want) <= 1e-6L * std::abs(want) + 1e-16L * std::abs(got) / step + 1e-300L,
          row.name << " at " << text(x) << ": " << text(Z(found[k])) << ", not " << text(want));
    }
  }
}

// C's by the compiler's __divdc3, which is JAX's too, but for the sign of a zero.
TEST_CASE("complex: quotients with parts that are 0, infinite or NaN") {
  const double parts[] = {0.0, -0.0, 2, -3, 1e300, -1e-300, infinity, -infinity, nan};
  Numbers all, a, b;
  for (const double re : parts)
    for (const double im : parts) all.emplace_back(re, im);
  for (const Number& x : all)
    for (const Number& y : all) {
      a.push_back(x);
      b.push_back(y);
    }
  const auto got = (sa::array(a) / sa::array(b)).to_vector<Number>();
  for (std::size_t k = 0; k < a.size(); k++) {
    const Z x(a[k]), y(b[k]);
    if (has_nan(x) || has_nan(y)) continue;
    const Number want = a[k] / b[k];
    const std::string what = text(x) + " / " + text(y) + ": " + text(Z(got[k])) + ", not " + text(Z(want));
    if (truth::is_infinite(x) || y == Z(0) || has_nan(Z(want))) {
      CHECK_MESSAGE(!truth::is_finite(Z(got[k])), what);
      continue;
    }
    const auto same = [&](double mine, double theirs) {
      return (std::isnan(mine) && std::isnan(theirs)) || mine == theirs ||
             std::abs(mine - theirs) <= 1e-15 * std::abs(want) + 1e-307;
    };
    CHECK_MESSAGE((same(got[k].real(), want.real()) && same(got[k].imag(), want.imag())), what);
  }
}

TEST_CASE("complex: powers and angles of two numbers, however large or small") {
  const auto both = [](const auto& f, Number a, Number b) {
    const auto real = [&](const Array& x, const Array& y) { return sa::real(f(x, y)); };
    const auto [da, db] = sa::grad<0, 1>(real)(sa::array(Numbers{a})[0], sa::array(Numbers{b})[0]);
    return std::array{f(sa::array(Numbers{a}), sa::array(Numbers{b}))[0].template item<Number>(),
                      da.template item<Number>(), db.template item<Number>()};
  };
  const auto near = [](Number got, Z want) {
    CHECK_MESSAGE(std::abs(Z(got) - want) <= 1e-13L * std::abs(want), text(Z(got)) << ", not " << text(want));
  };
  for (const double size : {1e-200, 1e-30, 1.0, 1e30, 1e200})
    for (const Number unit : {Number(1, 0.5), Number(-2, 0.25), Number(0.5, -1)}) {
      const Number y = unit * size, x = Number(0.75, 0.1) * size;
      const auto [value, dy, dx] = both(sa::arctan2, y, x);
      const Z r = Z(x) * Z(x) + Z(y) * Z(y);
      near(value, Z(0, -1) * std::log((Z(x) + Z(0, 1) * Z(y)) / std::sqrt(r)));
      near(dy, Z(x) / r);
      near(dx, -Z(y) / r);
      const auto [power, da, db] = both(sa::power, y, Number(0.5, -0.25));
      const Z exponent(0.5L, -0.25L);
      near(power, std::exp(exponent * std::log(Z(y))));
      near(da, exponent * std::exp((exponent - Part(1)) * std::log(Z(y))));
      near(db, std::log(Z(y)) * std::exp(exponent * std::log(Z(y))));
    }
  CHECK(both(sa::power, 0, 1)[1] == Number(1, 0));
  CHECK(both(sa::power, 0, 2)[1] == Number(0, 0));
}

TEST_CASE("complex: the angle of what is large or tiny has a gradient, a sign has no overflow") {
  const auto slope = sa::grad([](const Array& z) { return sa::sum(sa::angle(z)); })(
      sa::array(std::vector<std::complex<float>>{{3e-30f, 4e-30f}, {3e30f, 4e30f}}));
  const auto found = slope.to_vector<Number>();  // -y / r^2 - i x / r^2
  CHECK(found[0].real() == doctest::Approx(-0.16e30));
  CHECK(found[0].imag() == doctest::Approx(-0.12e30));
  CHECK(found[1].real() == doctest::Approx(-0.16e-30).epsilon(1e-6));
  CHECK(found[1].imag() == doctest::Approx(-0.12e-30).epsilon(1e-6));
  const auto sign = sa::sign(sa::array(std::vector<std::complex<float>>{{3e38f, -3e38f}}))[0].item<Number>();
  CHECK(sign.real() == doctest::Approx(std::sqrt(0.5)));
  CHECK(sign.imag() == doctest::Approx(-std::sqrt(0.5)));
}

}  // namespace complex_specials_test

// Complex arrays with parts near the largest numbers, infinite or NaN; conjugating functions. Compared with std::complex<double>.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <vector>

#include "shardarray/shardarray.h"

namespace complex_edges_test {

namespace sa = shardarray;
using sa::Array;
using C = std::complex<float>;
using Number = std::complex<double>;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// A number that float32 holds, or infinity.
double rounded(double x) { return static_cast<double>(static_cast<float>(x)); }
void check_part(double got, double want, double size) {
  if (std::isnan(want)) CHECK(std::isnan(got));
  else if (std::isinf(rounded(want))) CHECK(got == rounded(want));
  else CHECK(std::abs(got - want) <= 2e-6 * size + 2e-45);  // the smallest float is 1.4e-45
}

/// A matrix [rows, columns] of numbers with both parts, that differ.
Array matrix(std::int64_t rows, std::int64_t columns, float first) {
  const Array k = sa::arange(static_cast<float>(rows * columns)).reshape({rows, columns}) + first;
  return sa::complex(sa::sin(k * 1.7f), sa::cos(k * 0.9f));
}
Number at(const Array& m, std::int64_t i, std::int64_t j) { return m[i][j].item<Number>(); }

}  // namespace

TEST_CASE("complex: x^y has the slopes x^y log(x) and y x^(y-1), at y = 0 too") {
  const std::vector<C> bases = {{2, 0}, {-1, 0.5f}, {0.25f, -3}, {1e-3f, 1e-3f}},
                       exponents = {{0, 0}, {1, 0}, {0, 1}, {-2, 0.5f}};
  for (const C& x : bases)
    for (const C& y : exponents) {
      CAPTURE(x);
      CAPTURE(y);
      const auto slope = [](const auto& f, C at) {
        return Number(sa::jvp(f, Array(at), Array(C(1, 0))).second.template item<C>());
      };
      const Number in_y = slope([&](const Array&v) { return sa::power(Array(x), v); }, y),
                   in_x = slope([&](const Array&v) { return sa::power(v, Array(y)); }, x);
      const Number want_y = std::pow(Number(x), Number(y)) * std::log(Number(x)),
                   want_x = Number(y) * std::pow(Number(x), Number(y) - 1.0);
      CHECK(std::abs(in_y - want_y) <= 1e-5 * std::abs(want_y) + 1e-7);
      CHECK(std::abs(in_x - want_x) <= 1e-5 * std::abs(want_x) + 1e-7);
    }
  CHECK(sa::power(sa::array(std::vector<C>{{0, 0}, {infinity, 0}, {-2, -1}}), sa::zeros(3, sa::complex64))
            .to_vector<C>() == std::vector<C>(3, C(1, 0)));
}

TEST_CASE("complex: logsumexp is a logarithm, of the principal branch") {
  const std::vector<std::vector<C>> all = {{{0, 10}},
                                           {{1, 10}, {1, -2}},
                                           {{-3, 4}, {-5, 100}, {2, -1}},
                                           {{1000, 3}, {999, -3}},
                                           {{0.5f, -7}, {0.5f, 7}}};
  for (const auto& z : all) {
    double largest = -infinity;
    Number sum = 0;
    for (const C& v : z) largest = std::max<double>(largest, v.real());
    for (const C& v : z) sum += std::exp(Number(v) - largest);
    const Number want = std::log(sum) + largest;
    const auto got = Number(sa::logsumexp(sa::array(z)).item<C>());
    CHECK(got.real() == doctest::Approx(static_cast<double>(want.real())).epsilon(1e-5));
    CHECK(got.imag() == doctest::Approx(static_cast<double>(want.imag())).epsilon(1e-4));
  }
}

TEST_CASE("complex: functions of the largest numbers have every value that is a number") {
  const std::vector<float> parts{-3e38f, -1e38f, -100, -89, -1, 0, 1, 85, 89, 100, 1e38f, 3e38f};
  std::vector<C> all;
  for (const float re : parts)
    for (const float im : parts) all.emplace_back(re, im);
  const Array z = sa::array(all);
  const auto check = [&](const char* name, const Array& got, const auto& function) {
    CAPTURE(name);
    const auto values = got.to_vector<Number>();
    for (std::size_t k = 0; k < all.size(); k++) {
      const Number want = function(Number(all[k]));
      CAPTURE(all[k]);
      check_part(values[k].real(), want.real(), std::abs(want));
      check_part(values[k].imag(), want.imag(), std::abs(want));
    }
  };
  check("sqrt", sa::sqrt(z), [](Number x) { return std::sqrt(x); });
  std::erase_if(all, [](C x) { return x == C(0, 0); });
  const Array some = sa::array(all);
  check("log", sa::log(some), [](Number x) { return std::log(x); });
  check("log10", sa::log10(some), [](Number x) { return std::log10(x); });
  std::erase_if(all, [](C x) { return std::abs(x.imag()) > 1e6f || std::abs(x.real()) > 1e6f; });
  check("exp", sa::exp(sa::array(all)), [](Number x) { return std::exp(x); });
}

TEST_CASE("complex: sqrt of an infinite imaginary part is infinite") {
  for (const float re : {-infinity, -2.0f, 0.0f, 2.0f, infinity, nan})
    for (const float im : {-infinity, infinity}) {
      const C root = sa::sqrt(sa::array(std::vector<C>{{re, im}}))[0].item<C>();
      CAPTURE(re);
      CHECK(root.real() == infinity);
      CHECK(root.imag() == im);
    }
}

TEST_CASE("complex: nan_to_num looks at both parts") {
  const Array z = sa::array(std::vector<C>{{nan, 1}, {infinity, -infinity}, {1, nan}});
  const float most = std::numeric_limits<float>::max();
  CHECK(sa::nan_to_num(z).to_vector<C>() == std::vector<C>{{0, 1}, {most, -most}, {1, 0}});
  CHECK(sa::nan_to_num(z, {.nan = 7, .posinf = 8, .neginf = 9}).to_vector<C>() ==
        std::vector<C>{{7, 1}, {8, 9}, {1, 7}});
}

TEST_CASE("complex: inner products and covariances take conjugates") {
  const Array a = matrix(3, 5, 0), b = matrix(3, 5, 40);
  const auto near = [](Number got, Number want) {
    CHECK(std::abs(got - want) <= 1e-5 * (1 + std::abs(want)));
  };
  for (std::int64_t i = 0; i < 3; i++) {
    Number rows = 0;
    for (std::int64_t k = 0; k < 5; k++) rows += std::conj(at(a, i, k)) * at(b, i, k);
    near(sa::vecdot(a, b)[i].item<Number>(), rows);
    near(sa::vecdot(a.T(), b.T(), 0)[i].item<Number>(), rows);
    near(sa::vdot(a[i], b[i]).item<Number>(), rows);
  }
  for (std::int64_t j = 0; j < 5; j++) {
    Number columns = 0;
    for (std::int64_t k = 0; k < 3; k++) columns += std::conj(at(a, k, 1)) * at(b, k, j);
    near(sa::vecmat(a.T()[1], b)[j].item<Number>(), columns);
  }
  const auto mean = [](const Array& m, std::int64_t i) {
    Number sum = 0;
    for (std::int64_t k = 0; k < 5; k++) sum += at(m, i, k);
    return sum / 5.0;
  };
  const Array all = sa::concatenate({a, b}), cov = sa::cov(a, b), r = sa::corrcoef(a, b);
  for (std::int64_t i = 0; i < 6; i++)
    for (std::int64_t j = 0; j < 6; j++) {
      const auto covariance = [&](std::int64_t x, std::int64_t y) {
        Number sum = 0;
        for (std::int64_t k = 0; k < 5; k++)
          sum += (at(all, x, k) - mean(all, x)) * std::conj(at(all, y, k) - mean(all, y));
        return sum / 4.0;
      };
      near(at(cov, i, j), covariance(i, j));
      near(at(r, i, j), covariance(i, j) / std::sqrt(covariance(i, i) * covariance(j, j)));
    }
}

TEST_CASE("indexing: take_along_axis reads what x.at reads, in every mode") {
  const Array x = sa::arange(5.0f) + 1, i = sa::arange(-12, 12);
  for (const sa::TakeMode mode : {sa::TakeMode::clip, sa::TakeMode::wrap})
    CHECK(sa::take_along_axis(x, i, 0, mode).to_vector<float>() ==
          x.at(i).get({.mode = mode}).to_vector<float>());
  const auto got = sa::take_along_axis(x, i, 0).to_vector<float>(),
             want = x.at(i).get({.mode = sa::TakeMode::fill}).to_vector<float>();
  for (std::size_t k = 0; k < got.size(); k++)
    CHECK((got[k] == want[k] || (std::isnan(got[k]) && std::isnan(want[k]))));
}

TEST_CASE("complex: parts are as weak as what they are parts of, however and whenever that is computed") {
  const Array x = sa::full({3}, 0.5f), weak = Array(0.5), half = sa::full({3}, 256.0, sa::bfloat16);
  REQUIRE(weak.weak_type());
  const Number unit(0, 1);
  const std::vector<std::function<Array(const Array&)>> makers = {
      [&](const Array& a) { return a + unit; },
      [&](const Array& a) { return unit * a; },
      [](const Array& a) { return a.astype(sa::complex64); },
      [](const Array& a) { return sa::complex(a, 0.0); },
      [](const Array& a) { return sa::complex(2.5, a); },
      [](const Array& a) { return sa::complex(a, a); },
      [&](const Array& a) { return sa::conj(a + unit); },
      [&](const Array& a) { return -(a - unit) * 2; },
      [](const Array& a) {
        return sa::broadcast_to(sa::complex(a, 1.0), {2, 3});
      },
  };
  for (const Array& a : {x, weak})
    for (std::size_t k = 0; k < makers.size(); k++)
      for (const auto& part :
           {+[](const Array& z) { return sa::real(z); }, +[](const Array& z) { return sa::imag(z); }}) {
        CAPTURE(k);
        CAPTURE(a.weak_type());
        const auto make = makers[k];
        const Array pending = make(a);
        const Array computed = sa::block_until_ready(make(a));
        CHECK(part(pending).weak_type() == pending.weak_type());
        CHECK(part(computed).weak_type() == pending.weak_type());
        CHECK(part(pending).dtype() == sa::float32);
        const auto sum = [part](const Array& h, const Array& z) { return h + part(z); };
        const auto whole = [part, make](const Array& h, const Array& b) { return h + part(make(b)); };
        const Array late = sum(half, pending), early = sum(half, computed),
                    called = sa::jit(sum)(half, computed), traced = sa::jit(whole)(half, a);
        CHECK(late.dtype() == (pending.weak_type() ? sa::bfloat16 : sa::float32));
        for (const Array& other : {early, called, traced}) {
          CHECK(other.dtype() == late.dtype());
          CHECK(other.to_vector<double>() == late.to_vector<double>());
        }
      }
}

}  // namespace complex_edges_test

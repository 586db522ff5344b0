// Statistics, norms and running reductions: types, edges and messages; their values on shards: op_cases_statistics.cpp.
#include "shardarray/statistics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "everywhere.h"
#include "messages.h"
#include "shardarray/grad.h"
#include "shardarray/placement.h"

namespace statistics_test {

namespace sa = shardarray;
using sa::array;
using sa::Array;
using sa::Shape;
using Values = std::vector<double>;
using shardarray::testing::message_of;
using shardarray::testing::values;

namespace {

constexpr double nan_ = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();

double value(const Array& x) { return values(x)[0]; }

}  // namespace

TEST_CASE("statistics: std, ptp, counts and averages have JAX's types and values") {
  const Array x = array({1, 2, 3, 4});
  CHECK(value(sa::std(x)) == doctest::Approx(std::sqrt(1.25)));
  CHECK(sa::std(x).dtype() == sa::float32);
  CHECK(sa::std(x.astype(sa::int64)).dtype() == sa::float64);
  CHECK(value(sa::std(x, {}, 1)) == doctest::Approx(std::sqrt(5.0 / 3)));
  CHECK(std::isnan(value(sa::std(x, {}, 4))));
  // in float32, rounded once: the variance alone is no float16
  const Array halves = array({0.0, 0.0001}).astype(sa::float16);
  CHECK(sa::std(halves).dtype() == sa::float16);
  CHECK(value(sa::std(halves)) == doctest::Approx(5e-5).epsilon(2e-2));
  CHECK(value(sa::ptp(array({3, -2, 5}))) == 7);
  CHECK(sa::ptp(array({3, -2, 5})).dtype() == sa::int32);
  CHECK(value(sa::count_nonzero(array({0.0, -0.0, nan_, 2.0}))) == 2);
  CHECK(sa::count_nonzero(x).dtype() == sa::int32);
  CHECK(sa::count_nonzero(x, {.dtype = sa::int64}).dtype() == sa::int64);
  CHECK(value(sa::average(x)) == 2.5);
  CHECK(value(sa::average(x, array({true, false, true, false}))) == 2);
  const Array gap = array({{nan_, 1.0}, {3.0, inf}}), mask = array({{false, true}, {true, false}});
  CHECK(value(sa::average(gap, mask)) == 2);
  CHECK(values(sa::average(gap, mask, 0)) == Values{3, 1});
  CHECK(std::isnan(value(sa::average(gap, mask.astype(sa::float32)))));
  CHECK(values(sa::grad([&](const Array& a) { return sa::average(a, mask); })(gap)) ==
        Values{0, 0.5, 0.5, 0});
  CHECK(sa::average(x, x).dtype() == sa::float32);
  CHECK(values(sa::average(x.reshape({2, 2}), array({3.0, 1.0}), {.axis = 1, .keepdims = true})) ==
        Values{1.25, 3.25});
}

TEST_CASE("statistics: quantiles by every method, of NaN, infinities and integers") {
  using M = sa::QuantileMethod;
  const Array x = array({4, 1, 3, 2});
  const auto by = [&](double q, M m) { return value(sa::quantile(x, q, {.method = m})); };
  CHECK(by(0.4, M::linear) == doctest::Approx(2.2));
  CHECK(by(0.4, M::lower) == 2);
  CHECK(by(0.4, M::higher) == 3);
  CHECK(by(0.4, M::midpoint) == 2.5);
  CHECK(by(0.4, M::nearest) == 2);
  CHECK(by(0.5, M::nearest) == 2);
  CHECK(by(0.6, M::nearest) == 3);
  CHECK(by(0, M::linear) == 1);
  CHECK(by(1, M::higher) == 4);
  CHECK(values(sa::percentile(x, {0, 50, 100})) == Values{1, 2.5, 4});
  CHECK(sa::quantile(x, std::vector<double>{}).shape() == Shape{0});
  // a list has a dimension, also of one
  CHECK(sa::quantile(x, {0.5}).shape() == Shape{1});
  CHECK(sa::percentile(x, {50}).shape() == Shape{1});
  CHECK(sa::percentile(x, 50).shape() == Shape{});
  CHECK(sa::quantile(x.reshape({2, 2}), {0.5}, {.axis = 0}).shape() == Shape{1, 2});
  CHECK(sa::median(x).dtype() == sa::float32);
  CHECK(sa::median(x.astype(sa::int64)).dtype() == sa::float64);
  CHECK(sa::median(x.reshape({2, 2}), {.axis = 0, .keepdims = true}).shape() == Shape{1, 2});
  CHECK(value(sa::median(Array(3))) == 3);
  CHECK(std::isnan(value(sa::median(array({1.0, nan_, 2.0})))));
  CHECK(value(sa::median(array({-inf, 0.0, inf}))) == 0);
  CHECK(value(sa::median(array({0.0, inf}))) == inf);
  CHECK(value(sa::median(array({1.0, 2.0}).astype(sa::bfloat16))) == 1.5);
}

TEST_CASE("statistics: of NaN only, of integers, of nothing") {
  const Array none_left = array({nan_, nan_}), some = array({nan_, 3.0, 1.0});
  CHECK(value(sa::nansum(none_left)) == 0);
  CHECK(value(sa::nanprod(none_left)) == 1);
  for (const Array& y : {sa::nanmean(none_left), sa::nanvar(none_left), sa::nanstd(none_left),
                         sa::nanmax(none_left), sa::nanmin(none_left), sa::nanvar(array({nan_, 3.0}), {}, 1)})
    CHECK(std::isnan(value(y)));
  CHECK(value(sa::nanargmax(none_left)) == -1);
  CHECK(value(sa::nanargmin(none_left)) == -1);
  CHECK(value(sa::nanargmax(some)) == 1);
  CHECK(value(sa::nanargmax(array({nan_, -inf}))) == 0);
  CHECK(value(sa::nanmax(some)) == 3);
  CHECK(value(sa::nanmax(array({nan_, -inf}))) == -inf);
  CHECK(value(sa::nanmean(array({1, 2}))) == 1.5);
  CHECK(sa::nansum(array({1, 2}).astype(sa::int8)).dtype() == sa::int32);
  CHECK(value(sa::nanmax(array({1, 2}))) == 2);
  CHECK(value(sa::nanargmin(array({true, false}))) == 1);
  CHECK(std::isnan(value(sa::nanmean(sa::zeros({0})))));
  CHECK(values(sa::nancumsum(some)) == Values{0, 3, 4});
  // what is left out has no gradient, the others have that of the mean of two
  CHECK(values(sa::grad([](const Array& x) { return sa::nanmean(x); })(some)) == Values{0, 0.5, 0.5});
}

TEST_CASE("statistics: of complex numbers a NaN in either part is none") {
  using Number = std::complex<double>;
  using Numbers = std::vector<Number>;
  const auto numbers = [](const Array& x) { return x.to_vector<Number>(); };
  const Array x = array({Number(nan_, 1), Number(1, 2), Number(3, nan_), Number(5, -6)});
  const Array none_left = array({Number(nan_, 1), Number(2, nan_)});
  CHECK(numbers(sa::nansum(x)) == Numbers{{6, -4}});
  CHECK(numbers(sa::nanmean(x)) == Numbers{{3, -2}});
  // |-2 + 4i|^2 and |2 - 4i|^2
  CHECK(value(sa::nanvar(x)) == 20);
  CHECK(value(sa::nanvar(x, {}, 1)) == 40);
  CHECK(sa::nanvar(x).dtype() == sa::float32);
  CHECK(sa::nanstd(x.astype(sa::complex128)).dtype() == sa::float64);
  CHECK(numbers(sa::nanmean(x, {.where = array({true, true, true, false})})) == Numbers{{1, 2}});
  CHECK(numbers(sa::nancumsum(x)) == Numbers{0, {1, 2}, {1, 2}, {6, -4}});
  CHECK(numbers(sa::nansum(none_left)) == Numbers{0});
  CHECK(numbers(sa::nanprod(none_left)) == Numbers{1});
  for (const Array& y : {sa::nanmean(none_left), sa::nanvar(none_left), sa::nanstd(none_left),
                         sa::nanmax(none_left), sa::nanmin(none_left), sa::nanvar(x[{sa::slice(2)}], {}, 1)})
    CHECK(sa::isnan(y).item<bool>());
  CHECK(value(sa::nanargmax(none_left)) == -1);
  // nothing is above or below what stands for NaN there
  const Array low = array({Number(nan_, 0), Number(-inf, -5)}),
              high = array({Number(inf, 5), Number(0, nan_)});
  CHECK(numbers(sa::nanmax(low)) == Numbers{{-inf, -5}});
  CHECK(value(sa::nanargmax(low)) == 1);
  CHECK(numbers(sa::nanmin(high)) == Numbers{{inf, 5}});
  CHECK(value(sa::nanargmin(high)) == 0);
  // what is left out has no gradient, and others have one beside it
  const auto slope = numbers(sa::grad([](const Array& z) { return sa::nanvar(z); })(x));
  CHECK(slope == Numbers{0, {-2, -4}, 0, {2, 4}});
  const Array gap = array({nan_, 1.0, 5.0}), mask = array({false, true, true});
  CHECK(values(sa::grad([&](const Array& v) { return sa::var(v, {.where = mask}); })(gap)) ==
        Values{0, -2, 2});
}

TEST_CASE("statistics: norms of vectors and matrices") {
  const Array m = array({{1, -2}, {-3, 4}});
  CHECK(value(sa::norm(m)) == doctest::Approx(std::sqrt(30.0)));
  CHECK(sa::norm(m).dtype() == sa::float32);
  CHECK(value(sa::norm(m, {.ord = 1})) == 6);
  CHECK(value(sa::norm(m, {.ord = -1})) == 4);
  CHECK(value(sa::norm(m, {.ord = inf})) == 7);
  CHECK(value(sa::norm(m, {.ord = -inf})) == 3);
  CHECK(value(sa::norm(m, {.ord = 1, .axis = {1, 0}})) == 7);
  CHECK(sa::norm(m, {.ord = 1, .keepdims = true}).shape() == Shape{1, 1});
  CHECK(values(sa::norm(m, {.ord = 1, .axis = 0})) == Values{4, 6});
  CHECK(value(sa::vector_norm(m, {.ord = 1})) == 10);
  CHECK(value(sa::vector_norm(m, {.ord = 0})) == 4);
  CHECK(value(sa::vector_norm(sa::zeros({0}), {.ord = 1})) == 0);
  // too large to be squared in float16
  CHECK(value(sa::norm(array({300, 400}).astype(sa::float16))) == 500);
}

TEST_CASE("statistics: cumlogsumexp neither overflows nor loses what is small") {
  const Values big = values(sa::cumlogsumexp(array({1000.0, 1000.0, -1000.0})));
  CHECK(big[0] == 1000);
  CHECK(big[1] == doctest::Approx(1000 + std::log(2.0)));
  CHECK(big[2] == big[1]);
  const Values small = values(sa::cumlogsumexp(array({0.0, -20.0})));
  CHECK(small[1] == doctest::Approx(std::log1p(std::exp(-20.0))).epsilon(1e-6));
  CHECK(values(sa::cumlogsumexp(array({-inf, -inf, 0.0, inf}))) == Values{-inf, -inf, 0, inf});
  CHECK(values(sa::cumlogsumexp(array({2.0, -inf}), {.reverse = true})) == Values{2, -inf});
  CHECK(values(sa::grad([](const Array& x) { return sa::cumlogsumexp(x)[1]; })(array({3.0, 3.0}))) ==
        Values{0.5, 0.5});
  // the second derivatives of the sum: of every running one diag(p) - p p', p its softmax
  const auto slope = [](const Array& x) {
    return sa::grad([](const Array& v) { return sa::sum(sa::cumlogsumexp(v)); })(x);
  };
  for (const Array& x : {sa::zeros({3}), array({0.5, 0.5, -1.0})})
    for (std::int64_t k = 0; k < 3; k++) {
      const Values got = values(sa::grad([&](const Array&v) { return slope(v)[k]; })(x)), at = values(x);
      for (std::size_t j = 0; j < 3; j++) {
        double want = 0;
        for (std::size_t n = 1; n <= 3; n++) {
          double total = 0;
          for (std::size_t i = 0; i < n; i++) total += std::exp(at[i]);
          const auto part = [&](std::size_t i) { return i < n ? std::exp(at[i]) / total : 0; };
          const auto row = static_cast<std::size_t>(k);
          want += part(row) * ((row == j ? 1 : 0) - part(j));
        }
        CHECK(got[j] == doctest::Approx(want).epsilon(1e-5));
      }
    }
  CHECK(values(sa::grad([](const Array& x) { return sa::cumlogsumexp(x)[1]; })(array({-inf, -inf}))) ==
        Values{0.5, 0.5});
  CHECK(sa::cumlogsumexp(array({1, 2})).dtype() == sa::float32);
  CHECK(sa::cumlogsumexp(sa::zeros({2, 3})).shape() == Shape{6});
}

TEST_CASE("statistics: results are strong") {
  const Array x = array({1.0, 2.0});
  for (const Array& y :
       {sa::std(x), sa::ptp(x), sa::count_nonzero(x), sa::average(x), sa::average(x, x), sa::median(x),
        sa::quantile(x, 0.3), sa::quantile(x, std::vector<double>{}), sa::nansum(x), sa::nanmax(x),
        sa::nanmean(x), sa::nanvar(x), sa::nanargmax(x), sa::nancumsum(x), sa::cumlogsumexp(x), sa::norm(x),
        sa::vector_norm(x, {.ord = 0}), sa::vector_norm(x, {.ord = 3})})
    CHECK_FALSE(y.weak_type());
}

TEST_CASE("statistics: messages") {
  const Array x = sa::zeros({2, 3}), b = array({true, false});
  CHECK_SAYS(
      sa::std(x, 2),
      "std: axis 2 is out of bounds for shape [2,3] of rank 2. Axes count from 0, or from -1 at the end. "
      "Give one that the array has.",
      sa::ShapeError);
  CHECK_SAYS(sa::std(x, {.dtype = sa::int32}),
             "std: dtype int32 was asked for. The result is floating. Give a floating dtype.",
             sa::DTypeError);
  CHECK_SAYS(sa::ptp(b), "ptp: the operand is bool[2]. It takes numbers. Cast with astype.", sa::DTypeError);
  CHECK_SAYS(sa::ptp(sa::zeros({0})),
             "ptp: f32[0] has no elements along axes [0]. No element has an extremum. Check the size first.",
             sa::ShapeError);
  CHECK_SAYS(
      sa::nanmax(sa::zeros({0})),
      "nanmax: f32[0] has no elements along axes [0]. No element has an extremum. Check the size first.",
      sa::ShapeError);
  CHECK_SAYS(
      sa::average(x, sa::zeros({4}), 1),
      "average: weights f32[4] of f32[2,3] along axes [1]. They have its shape, or are a vector along the "
      "one axis. Reshape or broadcast them.",
      sa::ShapeError);
  CHECK_SAYS(sa::quantile(x, 1.5),
             "quantile: q is 1.5. It lies between 0 and 1. Give a part of the elements.", sa::Error);
  CHECK_SAYS(sa::percentile(x, {50.0, nan_}),
             "percentile: q is nan. It lies between 0 and 100. Give a part of the elements.", sa::Error);
  CHECK_SAYS(
      sa::median(x, {0, 3}),
      "median: axis 3 is out of bounds for shape [2,3] of rank 2. Axes count from 0, or from -1 at the end. "
      "Give one that the array has.",
      sa::ShapeError);
  const std::pair<std::string, Array (*)(const Array&)> functions[] = {{"nanargmin",
                                                                        [](const Array& a) {
                                                                          return sa::nanargmin(a, {0, 1});
                                                                        }},
                                                                       {"nanargmax",
                                                                        [](const Array& a) {
                                                                          return sa::nanargmax(a, {0, 1});
                                                                        }},
                                                                       {"argmin", [](const Array& a) {
                                                                          return sa::argmin(a, {0, 1});
                                                                        }}};
  for (const auto& f : functions)
    CHECK_SAYS(f.second(x),
               f.first + ": axes [0,1]. It takes one axis, or none for the flattened array. Reshape first.",
               sa::ShapeError);
  CHECK_SAYS(
      sa::norm(x, {.ord = 3}),
      "norm: order 3 of matrices. The orders are 1, -1, 2, -2, infinity and -infinity. Leave it out for the "
      "root of the sum of squares, say nuclear alone, or use vector_norm.",
      sa::Error);
  CHECK_SAYS(
      sa::norm(sa::zeros({1, 2, 3}), {.ord = 1}),
      "norm: order 1 over 3 axes of f32[1,2,3]. An order is one of vectors or of matrices. Name one axis or "
      "two, or use vector_norm.",
      sa::ShapeError);
  CHECK_SAYS(
      sa::norm(sa::zeros({1, 2, 3}), {.nuclear = true}),
      "norm: the nuclear norm over 3 axes of f32[1,2,3]. An order is one of vectors or of matrices. Name one "
      "axis or two, or use vector_norm.",
      sa::ShapeError);
  CHECK_SAYS(
      sa::cumlogsumexp(x, 5),
      "cumlogsumexp: axis 5 is out of bounds for shape [2,3] of rank 2. Axes count from 0, or from -1 at the "
      "end. Give one that the array has.",
      sa::ShapeError);
}

// The definition, in plain loops: of sorted numbers the two beside q (n - 1), or one of them alone.
static double plain_quantile(Values v, double q, sa::QuantileMethod method, bool ignores_nan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::size_t all = v.size();
  std::erase_if(v, [](double x) { return std::isnan(x); });
  if (v.empty() || (!ignores_nan && v.size() < all)) return nan;
  std::sort(v.begin(), v.end());
  const double position = q * static_cast<double>(v.size() - 1), between = position - std::floor(position);
  const auto low = static_cast<std::size_t>(position);
  const double part = method == sa::QuantileMethod::lower      ? 0
                      : method == sa::QuantileMethod::higher   ? (between > 0 ? 1 : 0)
                      : method == sa::QuantileMethod::midpoint ? (between > 0 ? 0.5 : 0)
                      : method == sa::QuantileMethod::nearest  ? (between > 0.5 ? 1 : 0)
                                                               : between;
  if (part == 0) return v[low];
  return part == 1 ? v[low + 1] : v[low] * (1 - part) + v[low + 1] * part;
}

TEST_CASE("statistics: quantiles of infinities, NaN and numbers, all methods") {
  constexpr double inf = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  const Values some{-inf, -1, 0, 2, inf, nan};
  const std::size_t length = 4;
  std::vector<Values> lines;  // all of that length
  for (std::size_t k = 0; k < 6 * 6 * 6 * 6; k++) {
    lines.emplace_back();
    for (std::size_t d = 0, digits = k; d < length; d++, digits /= 6)
      lines.back().push_back(some[digits % 6]);
  }
  Values flat;
  for (const Values& l : lines) flat.insert(flat.end(), l.begin(), l.end());
  const Array x = sa::array(flat, sa::float64)
                      .reshape({static_cast<std::int64_t>(lines.size()), static_cast<std::int64_t>(length)});
  const auto same = [](double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) < 1e-12;
  };
  const Values qs{0, 0.2, 0.25, 0.5, 0.7, 1};
  for (const auto method : {sa::QuantileMethod::linear, sa::QuantileMethod::lower, sa::QuantileMethod::higher,
                            sa::QuantileMethod::midpoint, sa::QuantileMethod::nearest})
    for (const bool ignores : {false, true}) {
      const sa::QuantileOptions o{.axis = 1, .method = method};
      const Values got = (ignores ? sa::nanquantile(x, qs, o) : sa::quantile(x, qs, o)).to_vector<double>();
      std::size_t wrong = 0;
      for (std::size_t q = 0; q < qs.size(); q++)
        for (std::size_t l = 0; l < lines.size(); l++) {
          const double expected = plain_quantile(lines[l], qs[q], method, ignores);
          if (!same(got[q * lines.size() + l], expected)) wrong++;
        }
      CAPTURE(static_cast<int>(method));
      CAPTURE(ignores);
      CHECK(wrong == 0);
    }
  const Values medians = sa::nanmedian(x, 1).to_vector<double>();
  std::size_t wrong = 0;
  for (std::size_t l = 0; l < lines.size(); l++)
    if (!same(medians[l], plain_quantile(lines[l], 0.5, sa::QuantileMethod::linear, true))) wrong++;
  CHECK(wrong == 0);
}

}  // namespace statistics_test

// Sorting, searching, counting and segments: types, edges and messages; their values on shards: op_cases_ordering.cpp.
#include "shardarray/ordering.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <vector>

#include "everywhere.h"
#include "messages.h"
#include "shardarray/explain.h"
#include "shardarray/filter_shard.h"
#include "shardarray/grad.h"
#include "shardarray/jit.h"
#include "shardarray/placement.h"

namespace ordering_test {

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

}  // namespace

TEST_CASE("ordering: falling and flattened, equal elements keep their order, NaN first") {
  const Array x = array({2, 1, 2, 3});
  CHECK(values(sa::argsort(x, {.descending = true})) == Values{3, 0, 2, 1});
  CHECK(values(sa::sort(x, {.descending = true})) == Values{3, 2, 2, 1});
  const Values with_nan = values(sa::sort(array({1.0, nan_, 2.0}), {.descending = true}));
  CHECK(std::isnan(with_nan[0]));
  CHECK(with_nan[1] == 2);
  CHECK(values(sa::sort(x.reshape({2, 2}), {.axis = std::nullopt})) == Values{1, 2, 2, 3});
  CHECK(values(sa::sort(x.reshape({2, 2}), 1, {.descending = true})) == Values{2, 1, 3, 2});
  CHECK(values(sa::argsort(x.reshape({2, 2}), 0, {.descending = true})) == Values{0, 1, 1, 0});
  CHECK(values(sa::argsort(x.reshape({2, 2}), {.axis = std::nullopt})) == Values{1, 0, 2, 3});
  CHECK(values(sa::lexsort({array({1, 0, 1, 0}), array({1, 1, 0, 0})})) == Values{3, 2, 1, 0});
  CHECK(sa::lexsort({x}).dtype() == sa::int32);
  const auto [largest, at] = sa::top_k(array({1.0, nan_, 3.0, 3.0}), 3);
  CHECK(std::isnan(values(largest)[0]));
  CHECK(values(at) == Values{1, 2, 3});
  CHECK(at.dtype() == sa::int32);
  CHECK(sa::top_k(x, 0).first.shape() == Shape{0});
}

TEST_CASE("ordering: argpartition puts one element in its place, and refuses places that are none") {
  const std::vector<double> x{5, 1, 4, 1, 3};
  for (const std::int64_t kth : {0, 2, 4, -5, -1}) {
    const Values order = values(sa::argpartition(array(x), kth));
    const auto place = static_cast<std::size_t>(kth < 0 ? kth + 5 : kth);
    const auto at = [&](std::size_t k) { return x[static_cast<std::size_t>(order[k])]; };
    for (std::size_t k = 0; k < x.size(); k++) CHECK((k < place ? at(k) <= at(place) : at(k) >= at(place)));
  }
  CHECK(sa::argpartition(array(x), 0).dtype() == sa::int32);
  CHECK_SAYS(sa::argpartition(array(x), 5),
             "argpartition: place 5 of 5 elements. Places are in -5 .. 4. Give one of them.", sa::ShapeError);
  CHECK_SAYS(sa::argpartition(sa::zeros({2, 0}), 0),
             "argpartition: the axis has no elements. One of them is put in its place. Give more.",
             sa::ShapeError);
  CHECK_SAYS(sa::argpartition(array(x), -6),
             "argpartition: place -6 of 5 elements. Places are in -5 .. 4. Give one of them.",
             sa::ShapeError);
}

TEST_CASE("ordering: partition puts one element in its place, and refuses places that are none") {
  const Array x = array({5.0, 1.0, std::nan(""), 1.0, 3.0}), y = array({{9, 2, 4}, {7, 8, 1}});
  const Values sorted = values(sa::partition(x, -2));
  CHECK(Values(sorted.begin(), sorted.end() - 1) == Values{1, 1, 3, 5});
  CHECK(std::isnan(sorted.back()));
  CHECK(values(sa::partition(y, 1)) == Values{2, 4, 9, 1, 7, 8});
  CHECK(values(sa::partition(y, 0, 0)) == Values{7, 2, 1, 9, 8, 4});
  CHECK(sa::partition(y, 1).dtype() == sa::int32);
  CHECK(values(sa::vmap([](const Array& row) { return sa::partition(row, 0); })(y)) ==
        Values{2, 4, 9, 1, 7, 8});
  CHECK_SAYS(sa::partition(x, 5),
             "partition: place 5 of 5 elements. Places are in -5 .. 4. Give one of them.", sa::ShapeError);
  CHECK_SAYS(sa::partition(array({1.0}), -2),
             "partition: place -2 of 1 element. Places are in -1 .. 0. Give one of them.", sa::ShapeError);
  CHECK_SAYS(sa::partition(sa::zeros({2, 0}), 0),
             "partition: the axis has no elements. One of them is put in its place. Give more.",
             sa::ShapeError);
  CHECK_THROWS_AS((void)sa::partition(array(1.0), 0), sa::ShapeError);
}

TEST_CASE("ordering: searches of NaN, of nothing, and between two dtypes") {
  const Array x = array({1.0, 2.0, nan_});
  CHECK(values(sa::searchsorted(x, array({nan_, inf, 2.0, -inf}))) == Values{2, 2, 1, 0});
  CHECK(values(sa::searchsorted(x, array({nan_, inf, 2.0}), sa::Side::right)) == Values{3, 2, 2});
  CHECK(values(sa::searchsorted(array({1, 2, 3}), 1.5)) == Values{1});
  CHECK(values(sa::searchsorted(sa::zeros({0}), array({1.0, 2.0}))) == Values{0, 0});
  CHECK(sa::searchsorted(array({1, 2}), sa::zeros({2, 0})).shape() == Shape{2, 0});
  CHECK(sa::searchsorted(array({1}), 1).dtype() == sa::int32);
  for (const std::int64_t n : {1, 2, 3, 4, 7, 8, 9}) {
    const Array places = sa::arange(n);
    Values want;
    for (std::int64_t k = 0; k <= n; k++) want.push_back(static_cast<double>(k));
    CHECK(values(sa::searchsorted(places, sa::arange(n + 1))) == want);
  }
  const Array bins = array({0, 10, 20});
  CHECK(values(sa::digitize(array({-1, 0, 10, 25}), bins)) == Values{0, 1, 2, 3});
  CHECK(values(sa::digitize(array({-1, 0, 10, 25}), bins, true)) == Values{0, 0, 1, 3});
  CHECK(values(sa::digitize(array({-1, 0, 10, 25}), array({20, 10, 0}))) == Values{3, 2, 1, 0});
}

TEST_CASE("ordering: counts of what is outside, of bool, of nothing; bins of one value") {
  CHECK(values(sa::bincount(array({-3, 0, 1, 9}), 2)) == Values{2, 1});
  CHECK(sa::bincount(array({1}), 2).dtype() == sa::int32);
  CHECK(values(sa::bincount(array({true, false, true}), 2)) == Values{1, 2});
  CHECK(values(sa::bincount(array({1, 1}).astype(sa::uint8), array({0.5, 0.25}), 3)) == Values{0, 0.75, 0});
  CHECK(sa::bincount(array({1}), 0).shape() == Shape{0});
  const auto [counts, edges] = sa::histogram(array({0, 1, 2, 3}), array({0, 1, 3}));
  CHECK(values(counts) == Values{1, 3});
  CHECK(counts.dtype() == sa::float32);
  const auto [one, around] = sa::histogram(array({2.0, 2.0}), 1);
  CHECK(values(one) == Values{2});
  CHECK(values(around) == Values{1.5, 2.5});
  CHECK(std::isnan(values(sa::histogram(array({1.0, inf}), 2).second)[0]));
  CHECK(values(sa::bincount(array({1, 1}), array({true, true}), 2)) == Values{0, 2});
  CHECK(sa::bincount(array({1, 1}), array({true, true}), 2).dtype() == sa::int32);
  CHECK(values(sa::histogram(array({nan_, 0.5, 7.0}), 2, {{0.0, 1.0}}).first) == Values{0, 1});
  CHECK(values(sa::histogram(sa::zeros({0}), 2, {{0.0, 1.0}}).first) == Values{0, 0});
}

TEST_CASE("ordering: an index of one's own, inside and outside") {
  const Array x = array({{1.0, 2.0}, {3.0, 4.0}});
  const Values got = values(sa::take_along_axis(x, array({{1, -1}, {2, -3}}), 1));
  CHECK(got[0] == 2);
  CHECK(got[1] == 2);
  CHECK(std::isnan(got[2]));
  CHECK(std::isnan(got[3]));
  CHECK(values(sa::take_along_axis(x, array({{0, 1}}), 0)) == Values{1, 4});
  CHECK(values(sa::take_along_axis(x, sa::argsort(x, {.descending = true}), 1)) == Values{2, 1, 4, 3});
  CHECK(values(sa::grad([](const Array& a) {
          return sa::sum(sa::take_along_axis(a, array({{0}, {0}}), 1));
        })(x)) == Values{1, 0, 1, 0});
}

TEST_CASE("ordering: rows that the index shares are not repeated") {
  // x has one element, the index has, or both have in one dimension beside the axis
  const Array x = sa::arange(120, sa::float32);
  for (const Shape& from : {Shape{1, 4, 5}, Shape{3, 4, 1}, Shape{1, 4, 1}, Shape{3, 4, 5}})
    for (const Shape& wanted :
         {Shape{3, 2, 5}, Shape{1, 2, 5}, Shape{3, 2, 1}, Shape{1, 2, 1}, Shape{3, 0, 5}}) {
      const Array table = x[{sa::slice(0, sa::num_elements(from))}].reshape(from),
                  index = sa::arange(sa::num_elements(wanted)).reshape(wanted) % 4;
      const Shape shared{std::max(from[0], wanted[0]), 4, std::max(from[2], wanted[2])},
          result{shared[0], wanted[1], shared[2]};
      const Array repeated = sa::broadcast_to(table, shared), at = sa::broadcast_to(index, result);
      const Values t = values(repeated), i = values(at), got = values(sa::take_along_axis(table, index, 1));
      Values want;
      for (std::int64_t a = 0; a < result[0]; a++)
        for (std::int64_t b = 0; b < result[1]; b++)
          for (std::int64_t c = 0; c < result[2]; c++) {
            const auto row = i[static_cast<std::size_t>((a * result[1] + b) * result[2] + c)];
            want.push_back(
                t[static_cast<std::size_t>((a * 4 + static_cast<std::int64_t>(row)) * shared[2] + c)]);
          }
      CHECK(got == want);
    }
  const auto peak = [](const auto& f) {
    return sa::explain(sa::jit(f), sa::ones({1, 10000}), sa::zeros({1000, 10}, sa::int32))
        .peak_bytes_per_device;
  };
  const auto taken = [](const Array& table, const Array& index) {
    return sa::take_along_axis(table, index, 1);
  };
  CHECK(peak(taken) < 10 * 40000);
  CHECK(peak([&](const Array& table, const Array& index) {
          return sa::grad([&](const Array& v) { return sa::sum(taken(v, index)); })(table);
        }) < 10 * 40000);
}

TEST_CASE("ordering: the gradients of extrema of segments are shared, in memory for the rows alone") {
  const auto slope = [](const Array& x, const Array& ids, std::int64_t count) {
    return sa::grad([&](const Array& a) {
      return sa::sum(sa::segment_max(a, ids, count) * 2) + sa::sum(sa::segment_min(a, ids, count));
    })(x);
  };
  const Array x = array({{1.0, 5.0}, {1.0, 2.0}, {0.0, 2.0}, {9.0, 9.0}, {7.0, 7.0}, {inf, -inf}});
  CHECK(values(slope(x, array({0, 0, 0, -1, 3, 2}), 3)) == Values{1, 2, 1, 0.5, 1, 0.5, 0, 0, 0, 0, 3, 3});
  const Values of_nan = values(slope(array({nan_, 1.0, 2.0}), array({0, 0, 1}), 2));
  CHECK(std::isnan(of_nan[1]));
  CHECK(of_nan[2] == 3);
  CHECK(values(sa::jvp(
                   [](const Array& a) {
                     return sa::segment_max(a, array({0, 0, 1}), 2);
                   },
                   std::tuple(array({1.0, 1.0, 3.0})), std::tuple(array({2.0, 4.0, 5.0})))
                   .second) == Values{3, 5});
  const auto rows =
      sa::explain(sa::jit([&](const Array& a, const Array& ids) { return slope(a, ids, 1000); }),
                  sa::ones({1000, 8}), sa::zeros({1000}, sa::int32));
  CHECK(rows.peak_bytes_per_device < 20 * 32000);
}

TEST_CASE("ordering: segments of nothing, and rows of none") {
  const Array x = array({1.0, 2.0, 4.0}), ids = array({2, -1, 2});
  CHECK(values(sa::segment_sum(x, ids, 3)) == Values{0, 0, 5});
  CHECK(values(sa::segment_prod(x, ids, 3)) == Values{1, 1, 4});
  CHECK(values(sa::segment_max(x, ids, 3)) == Values{-inf, -inf, 4});
  CHECK(values(sa::segment_min(x, ids, 3)) == Values{inf, inf, 1});
  CHECK(values(sa::segment_max(x.astype(sa::int8), ids.astype(sa::int8), 2)) == Values{-128, -128});
  CHECK(sa::segment_sum(x.astype(sa::int8), ids, 3).dtype() == sa::int8);
  CHECK(values(sa::segment_max(sa::zeros({0}), sa::zeros({0}, sa::int32), 2)) == Values{-inf, -inf});
  CHECK(sa::segment_min(sa::zeros({3, 2}), ids, 0).shape() == Shape{0, 2});
  // equal elements share the gradient
  CHECK(values(sa::grad([](const Array& a) {
          return sa::sum(sa::segment_max(a, array({0, 0}), 1));
        })(array({1.0, 1.0}))) == Values{0.5, 0.5});
}

TEST_CASE("ordering: positions and counts are strong") {
  const Array x = array({1.0, 2.0}), ids = array({0, 1}), none_given = sa::zeros({0});
  for (const Array& y :
       {sa::argsort(x, {.descending = true}), sa::lexsort({x}), sa::top_k(x, 1).second,
        sa::searchsorted(x, x), sa::searchsorted(none_given, x), sa::digitize(x, x),
        sa::digitize(x, none_given), sa::bincount(ids, 2), sa::bincount(ids, x, 2), sa::histogram(x, 2).first,
        sa::histogram(x, 2).second, sa::take_along_axis(x, ids, 0), sa::segment_sum(x, ids, 2),
        sa::segment_max(x, ids, 2), sa::segment_prod(none_given, none_given.astype(sa::int32), 2)})
    CHECK_FALSE(y.weak_type());
}

TEST_CASE("ordering: messages") {
  const Array x = sa::zeros({2, 3}), v = sa::zeros({3}), i = array({1, 2, 0});
  using sa::DTypeError;
  using sa::ShapeError;
  CHECK_SAYS(
      sa::sort(x, {.axis = 2}),
      "sort: axis 2 is out of bounds for shape [2,3] of rank 2. Axes count from 0, or from -1 at the end. "
      "Give one that the array has.",
      ShapeError);
  CHECK_SAYS(sa::lexsort({}), "lexsort: no keys. The last one is sorted by first. Give at least one.",
             ShapeError);
  CHECK_SAYS(sa::lexsort({x, v}), "lexsort: shapes [2,3] and [3]. All keys have one shape. Broadcast one.",
             ShapeError);
  CHECK_SAYS(sa::top_k(x, 4),
             "top_k: k is 4 of 3 elements. It is not negative and not more. Give a smaller one.", ShapeError);
  CHECK_SAYS(sa::searchsorted(x, v),
             "searchsorted: the elements are f32[2,3]. They are a vector. Use ravel, or vmap for several.",
             ShapeError);
  CHECK_SAYS(sa::digitize(v, x),
             "digitize: the edges are f32[2,3]. They are a vector. Use ravel, or vmap for several.",
             ShapeError);
  CHECK_SAYS(sa::bincount(x, 3),
             "bincount: the operand is f32[2,3]. It counts integers and bool. Cast with astype.", DTypeError);
  CHECK_SAYS(
      sa::bincount(sa::zeros({std::int64_t{1} << 31}, sa::uint8), 3),
      "bincount: of 2147483648 elements. Counts are int32, and one of them may not fit. Count in parts.",
      DTypeError);
  CHECK_SAYS(sa::bincount(i, -1),
             "bincount: length -1. The number of numbers is not negative. Give how many are counted.",
             ShapeError);
  CHECK_SAYS(sa::bincount(i, x, 3),
             "bincount: weights f32[2,3] of i32[3]. Every element has one. Broadcast them.", ShapeError);
  CHECK_SAYS(sa::histogram(x, sa::zeros({1})),
             "histogram: 1 edge. A bin has two. Give the edges, or a number of bins.", ShapeError);
  CHECK_SAYS(sa::histogram(x, 0), "histogram: 0 bins. There is at least one. Give how many there are.",
             ShapeError);
  CHECK_SAYS(sa::histogram(x, 3, {{1.0, 0.0}}), "histogram: the range from 1 to 0. It rises. Change both.",
             sa::Error);
  for (const auto& [low, high] : {std::pair{0.0, inf}, std::pair{-inf, 0.0}, std::pair{-inf, inf}})
    CHECK(message_of<sa::Error>([&x, low = low, high = high] {
            (void)sa::histogram(x, 3, {{low, high}});
          }).find("It is finite.") != std::string::npos);
  CHECK_SAYS(sa::histogram(x, 3, {{0.0, inf}}),
             "histogram: the range from 0 to inf. It is finite. Change both.", sa::Error);
  CHECK_SAYS(
      sa::histogram(sa::zeros({0}), 3),
      "histogram: f32[0] has no elements and no range. The bins lie between two numbers. Give a range.",
      ShapeError);
  CHECK_SAYS(sa::take_along_axis(x, x, 0),
             "take_along_axis: the operand is f32[2,3]. Indices are integers. Cast with astype.", DTypeError);
  CHECK_SAYS(
      sa::take_along_axis(x, i, 0),
      "take_along_axis: an index i32[3] of f32[2,3]. Both have one rank. Use take for one index of all rows.",
      ShapeError);
  CHECK_SAYS(sa::take_along_axis(sa::zeros({0, 3}), sa::zeros({1, 3}, sa::int32), 0),
             "take_along_axis: f32[0,3] has no elements along axis 0 for 3 indices. An index needs an "
             "element. Check the size first.",
             ShapeError);
  CHECK_SAYS(sa::segment_sum(v, v, 2),
             "segment_sum: the operand is f32[3]. Segments are integers. Cast with astype.", DTypeError);
  CHECK_SAYS(sa::segment_max(x, i, 2),
             "segment_max: ids i32[3] of f32[2,3]. Every row has one. Give a vector that is as long.",
             ShapeError);
  CHECK_SAYS(sa::segment_min(v, i, -1),
             "segment_min: -1 segments. The number is not negative. Give how many there are.", ShapeError);
  CHECK_SAYS(sa::segment_prod(v == 0, i, 2),
             "segment_prod: the operand is bool[3]. It takes numbers. Cast with astype.", DTypeError);
}

TEST_CASE("ordering: top_k of long rows, of which many elements are equal, is the front of a stable sort") {
  for (const std::int64_t n : {100, 1000, 8192, 8193, 10007, 16384, 40960})
    for (const std::int64_t k : {0, 1, 5, 16, 40}) {
      CAPTURE(n);
      CAPTURE(k);
      std::vector<float> rows(static_cast<std::size_t>(2 * n));
      for (std::size_t i = 0; i < rows.size(); i++)
        rows[i] = i % 97 == 13 ? std::numeric_limits<float>::quiet_NaN()
                               : static_cast<float>((i * 7919 + i / 3) % (k % 2 == 0 ? 11 : 1009)) - 5;
      std::vector<float> want;
      std::vector<std::int32_t> at;
      for (std::int64_t r = 0; r < 2; r++) {
        const float* row = rows.data() + r * n;
        std::vector<std::int32_t> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
          return std::isnan(row[a]) ? !std::isnan(row[b]) : row[a] > row[b];
        });
        for (std::int64_t j = 0; j < k; j++) {
          at.push_back(order[static_cast<std::size_t>(j)]);
          want.push_back(row[order[static_cast<std::size_t>(j)]]);
        }
      }
      const Array x = array(rows, {2, n});
      const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
      for (const Array& placed : {x, sa::device_put(x, sa::NamedSharding(mesh, sa::P("y", "x")))}) {
        const auto [values, places] = sa::jit([&](const Array& v) { return sa::top_k(v, k); })(placed);
        CHECK(places.to_vector<std::int32_t>() == at);
        const std::vector<float> got = values.to_vector<float>();
        REQUIRE(got.size() == want.size());
        for (std::size_t j = 0; j < got.size(); j++)
          CHECK((got[j] == want[j] || (std::isnan(got[j]) && std::isnan(want[j]))));
      }
    }
}

}  // namespace ordering_test

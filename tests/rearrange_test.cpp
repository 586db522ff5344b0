// Repeating, joining, diagonals, grids and borders: types, edges and messages; their values on shards: op_cases_rearrange.cpp.
#include "shardarray/rearrange.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "erased.h"
#include "everywhere.h"
#include "messages.h"
#include "shardarray/ordering.h"
#include "shardarray/placement.h"
#include "shardarray/products.h"
#include "shardarray/shardarray.h"
#include "shardarray/statistics.h"

namespace rearrange_test {

namespace sa = shardarray;
using sa::array;
using sa::Array;
using sa::Shape;
using Values = std::vector<double>;
using shardarray::testing::message_of;
using shardarray::testing::values;

namespace {}  // namespace

TEST_CASE("rearranging: tile, repeat, ranks and joins have NumPy's shapes") {
  const Array x = array({{1, 2}, {3, 4}});
  CHECK(values(sa::tile(array({1, 2}), 2)) == Values{1, 2, 1, 2});
  CHECK(sa::tile(x, {3, 1, 1}).shape() == Shape{3, 2, 2});
  CHECK(sa::tile(x, 0).shape() == Shape{2, 0});
  CHECK(sa::tile(Array(1), 3).shape() == Shape{3});
  // of nothing as often as one likes, where the sizes fit
  constexpr std::int64_t often = std::int64_t{1} << 61;
  CHECK(sa::tile(sa::zeros({0}, sa::int8), often).shape() == Shape{0});
  CHECK(sa::tile(sa::zeros({0}, sa::int8), often).dtype() == sa::int8);
  CHECK(sa::tile(sa::zeros({2, 0}), {1 << 20, often}).shape() == Shape{1 << 21, 0});
  CHECK(sa::tile(x, {often / 8, 0}).shape() == Shape{often / 4, 0});
  CHECK(values(sa::repeat(x, 2, 1)) == Values{1, 1, 2, 2, 3, 3, 4, 4});
  CHECK(sa::repeat(x, 0).shape() == Shape{0});
  CHECK(sa::repeat(Array(1), 3).shape() == Shape{3});
  CHECK(sa::atleast_1d(Array(1)).shape() == Shape{1});
  CHECK(sa::atleast_2d(Array(1)).shape() == Shape{1, 1});
  CHECK(sa::atleast_3d(array({1, 2})).shape() == Shape{1, 2, 1});
  CHECK(sa::ravel(Array(1)).shape() == Shape{1});
  const std::vector<Array> pair = sa::broadcast_arrays({array({1, 2}), sa::zeros({3, 1})});
  CHECK(pair[0].shape() == Shape{3, 2});
  CHECK(pair[0].dtype() == sa::int32);
  CHECK(sa::broadcast_arrays({}).empty());
  CHECK(values(sa::hstack({Array(1), Array(2)})) == Values{1, 2});
  CHECK(sa::vstack({Array(1), array({2})}).shape() == Shape{2, 1});
  CHECK(sa::dstack({array({1, 2}), array({3, 4})}).shape() == Shape{1, 2, 2});
  CHECK(sa::column_stack({Array(1), Array(2)}).shape() == Shape{1, 2});
  CHECK(sa::hstack({array({1}), array({0.5})}).dtype() == sa::float32);
  CHECK(values(sa::append(x, 9)) == Values{1, 2, 3, 4, 9});
  const std::vector<Array> pieces = sa::array_split(sa::arange(7), 3);
  CHECK(values(pieces[0]) == Values{0, 1, 2});
  CHECK(values(pieces[2]) == Values{5, 6});
  CHECK(sa::array_split(sa::arange(2), 3)[2].shape() == Shape{0});
}

TEST_CASE("rearranging: a number of repeats is one in a trace too, however it is given") {
  const auto all = [](const Array& x) {
    return std::vector<Array>{sa::repeat(x, 2), sa::repeat(x, 2, 0), sa::repeat(x, 2, {.axis = 0}),
                              sa::repeat(x, 2, {.axis = 0, .total_repeat_length = 5})};
  };
  const Array x = sa::arange(3);
  const auto now = all(x), traced = sa::jit(all)(x);
  const Values want[] = {{0, 0, 1, 1, 2, 2}, {0, 0, 1, 1, 2, 2}, {0, 0, 1, 1, 2, 2}, {0, 0, 1, 1, 2}};
  for (std::size_t k = 0; k < 4; k++) {
    CHECK(values(now[k]) == want[k]);
    CHECK(values(traced[k]) == want[k]);
  }
}

TEST_CASE("rearranging: positions of triangles, of any sizes and diagonals") {
  for (std::int64_t n = 0; n < 5; n++)
    for (std::int64_t m = 0; m < 5; m++)
      for (std::int64_t k = -6; k <= 6; k++) {
        CAPTURE(n);
        CAPTURE(m);
        CAPTURE(k);
        Values rows[2], columns[2];
        for (std::int64_t i = 0; i < n; i++)
          for (std::int64_t j = 0; j < m; j++)
            for (const bool upper : {false, true})
              if (upper ? j - i >= k : j - i <= k) {
                rows[upper].push_back(static_cast<double>(i));
                columns[upper].push_back(static_cast<double>(j));
              }
        const auto lower = sa::tril_indices(n, k, m), upper = sa::triu_indices(n, k, m);
        CHECK(values(lower.first) == rows[0]);
        CHECK(values(lower.second) == columns[0]);
        CHECK(values(upper.first) == rows[1]);
        CHECK(values(upper.second) == columns[1]);
      }
  // at once
  for (const std::int64_t n : {std::int64_t{1} << 36, std::int64_t{1} << 50}) {
    CHECK(sa::tril_indices(n, 0, 0).first.shape() == Shape{0});
    CHECK(sa::triu_indices(n, 0, 0).first.shape() == Shape{0});
    CHECK(sa::tril_indices(0, 0, n).first.shape() == Shape{0});
  }
  CHECK_THROWS_AS(static_cast<void>(sa::tril_indices(std::numeric_limits<std::int64_t>::max())),
                  sa::ShapeError);
}

TEST_CASE("rearranging: diagonals near, far and of nothing") {
  const Array x = sa::arange(6).reshape({2, 3});
  constexpr std::int64_t far = std::numeric_limits<std::int64_t>::max();
  CHECK(values(sa::diagonal(x)) == Values{0, 4});
  CHECK(values(sa::diagonal(x, 1)) == Values{1, 5});
  CHECK(values(sa::diagonal(x, -1)) == Values{3});
  CHECK(values(sa::diagonal(x, 0, 1, 0)) == Values{0, 4});
  for (const std::int64_t k :
       {std::int64_t{3}, std::int64_t{-2}, far, std::numeric_limits<std::int64_t>::min()})
    CHECK(sa::diagonal(x, k).shape() == Shape{0});
  CHECK(values(sa::diag(array({1.0, -2.0}), -1)) == Values{0, 0, 0, 1, 0, 0, 0, -2, 0});
  CHECK(std::signbit(values(sa::diagonal(array({{-0.0, 1.0}, {1.0, 2.0}})))[0]));
  CHECK(sa::diag(array({true, false})).dtype() == sa::bool_);
  CHECK(values(sa::trace(x)) == Values{4});
  CHECK(sa::trace(x.astype(sa::int8)).dtype() == sa::int32);
  CHECK(values(sa::trace(sa::zeros({0, 3}))) == Values{0});
  CHECK(values(sa::tri(2, 3, -1, sa::int8)) == Values{0, 0, 0, 1, 0, 0});
  CHECK(sa::identity(2, sa::bool_).dtype() == sa::bool_);
}

TEST_CASE("rearranging: grids, and values at equal ratios") {
  CHECK(sa::meshgrid({}).empty());
  CHECK(values(sa::meshgrid({array({1, 2})})[0]) == Values{1, 2});
  CHECK(sa::meshgrid({array({1, 2}), Array(0.5), array({1, 2, 3})})[2].shape() == Shape{1, 2, 3});
  CHECK(sa::indices({}).shape() == Shape{0});
  CHECK(sa::indices({2, 0}).shape() == Shape{2, 2, 0});
  CHECK(values(sa::logspace(0, 3, 3, {.endpoint = false}, 2)) == Values{1, 2, 4});
  CHECK(values(sa::geomspace(1, 1000, 4)) == Values{1, 10, 100, 1000});
  CHECK(sa::geomspace(1, 4, 3, {.dtype = sa::bfloat16}).dtype() == sa::bfloat16);
  CHECK(values(sa::geomspace(0.1, 0.7, 5)).back() == static_cast<double>(0.7f));
  CHECK(sa::geomspace(1, 2, 0).shape() == Shape{0});
  CHECK(values(sa::geomspace(1, 1000, 4, {.dtype = sa::int32})) == Values{1, 10, 100, 1000});
  CHECK(values(sa::geomspace(-1, -1000, 3, {.endpoint = false, .dtype = sa::int32})) ==
        Values{-1, -10, -100});
  // the ratio of the ends is no number
  CHECK(values(sa::geomspace(1e-200, 1e200, 3, {.dtype = sa::float64})) == Values{1e-200, 1, 1e200});
  CHECK(values(sa::geomspace(-1e200, -1e-200, 3, {.dtype = sa::float64})) == Values{-1e200, -1, -1e-200});
  for (const double end : {0.1, 0.3, 7.7, 1e-300}) {
    const Values ends = values(sa::geomspace(end, 3 * end, 3, {.dtype = sa::float64}));
    CHECK(ends.front() == end);
    CHECK(ends.back() == 3 * end);
  }
  CHECK(values(sa::geomspace(3, 7, 1)) == Values{3});
}

TEST_CASE("rearranging: borders wider than the array") {
  using M = sa::PadMode;
  const Array x = array({1, 2, 3}), one = array({7});
  CHECK(values(sa::pad(x, 4, M::reflect)) == Values{1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3});
  CHECK(values(sa::pad(x, 4, M::symmetric)) == Values{3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1});
  CHECK(values(sa::pad(x, 4, M::wrap)) == Values{3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1});
  CHECK(values(sa::pad(x, {{0, 2}}, M::edge)) == Values{1, 2, 3, 3, 3});
  for (const M m : {M::reflect, M::symmetric, M::wrap, M::edge})
    CHECK(values(sa::pad(one, 1, m)) == Values{7, 7, 7});
  CHECK(sa::pad(sa::zeros({0, 2}), {{0, 0}, {1, 1}}, M::edge).shape() == Shape{0, 4});
  CHECK(sa::sum(sa::pad(array({1, 2}), {{100001, 99999}}, M::wrap)).item<int>() == 300003);
}

TEST_CASE("rearranging: numbers of any size give a shape, or are refused in the function's name") {
  using Int = std::int64_t;
  const Array v = sa::ones({6}), x = sa::ones({2, 3}), square = sa::ones({3, 3}), i = sa::arange(6);
  const std::vector<std::pair<std::string, shardarray::testing::Erased<void(Int)>>> users = {
      {"tile", [&](Int n) { (void)sa::tile(v, n); }},
      {"repeat", [&](Int n) { (void)sa::repeat(v, n); }},
      {"repeat", [&](Int n) { (void)sa::repeat(v, 2, n); }},
      {"append", [&](Int n) { (void)sa::append(v, v, n); }},
      {"array_split", [&](Int n) { (void)sa::array_split(v, n); }},
      {"array_split", [&](Int n) { (void)sa::array_split(v, 2, n); }},
      {"diagonal", [&](Int n) { (void)sa::diagonal(x, n); }},
      {"diagonal", [&](Int n) { (void)sa::diagonal(x, 0, n, 0); }},
      {"diag", [&](Int n) { (void)sa::diag(v, n); }},
      {"trace", [&](Int n) { (void)sa::trace(x, n); }},
      {"tri", [&](Int n) { (void)sa::tri(n); }},
      {"tri", [&](Int n) { (void)sa::tri(2, n); }},
      {"tri", [&](Int n) { (void)sa::tri(2, 2, n); }},
      {"identity", [&](Int n) { (void)sa::identity(n); }},
      {"indices", [&](Int n) { (void)sa::indices({n}); }},
      {"logspace", [&](Int n) { (void)sa::logspace(0, 1, n); }},
      {"geomspace", [&](Int n) { (void)sa::geomspace(1, 2, n); }},
      {"pad", [&](Int n) { (void)sa::pad(v, n, sa::PadMode::reflect); }},
      {"pad", [&](Int n) { (void)sa::pad(v, n, sa::PadMode::edge); }},
      {"std", [&](Int n) { (void)sa::std(v, n); }},
      {"std", [&](Int n) { (void)sa::std(v, {}, n); }},
      {"nanvar", [&](Int n) { (void)sa::nanvar(v, {}, n); }},
      {"median", [&](Int n) { (void)sa::median(v, n); }},
      {"cumlogsumexp", [&](Int n) { (void)sa::cumlogsumexp(v, n); }},
      {"cross", [&](Int n) { (void)sa::cross(square, square, n); }},
      {"matrix_power", [&](Int n) { (void)sa::matrix_power(square, n); }},
      {"repeat", [&](Int n) { (void)sa::repeat(v, i, {.total_repeat_length = n}); }},
      {"pad_general",
       [&](Int n) {
         (void)sa::pad_general(v, {{n, 0, 0}});
       }},
      {"pad_general",
       [&](Int n) {
         (void)sa::pad_general(v, {{n, n, 0}});
       }},
      {"pad_general",
       [&](Int n) {
         (void)sa::pad_general(v, {{0, 0, n}});
       }},
      {"diff", [&](Int n) { (void)sa::diff(v, n); }},
      {"diff", [&](Int n) { (void)sa::diff(v, 1, n); }},
      {"gradient", [&](Int n) { (void)sa::gradient(v, n); }},
      {"trapezoid", [&](Int n) { (void)sa::trapezoid(v, 1, n); }},
      {"sort", [&](Int n) { (void)sa::sort(v, {.axis = n}); }},
      {"lexsort", [&](Int n) { (void)sa::lexsort({v}, n); }},
      {"top_k", [&](Int n) { (void)sa::top_k(v, n); }},
      {"bincount", [&](Int n) { (void)sa::bincount(i, n); }},
      {"histogram", [&](Int n) { (void)sa::histogram(v, n); }},
      {"take_along_axis", [&](Int n) { (void)sa::take_along_axis(v, i, n); }},
      {"segment_sum", [&](Int n) { (void)sa::segment_sum(v, i, n); }},
      {"segment_max", [&](Int n) { (void)sa::segment_max(v, i, n); }},
  };
  constexpr Int lowest = std::numeric_limits<Int>::min(), highest = std::numeric_limits<Int>::max();
  int refused = 0;
  for (const auto& user : users)
    for (const Int n :
         {lowest, Int{-7}, Int{-1}, Int{0}, Int{1}, Int{2}, Int{1} << 31, Int{1} << 61, highest}) {
      const std::string error = message_of<sa::Error>([&] { user.second(n); });
      if (error == "nothing was thrown") continue;
      refused++;
      CHECK_MESSAGE(error.starts_with(user.first + ": "), user.first << " of " << n << ": " << error);
    }
  CHECK(refused > 100);
}

TEST_CASE("rearranging: a roll by an array is that by its number, traced too, of any integers") {
  const Array x = sa::arange(24.0F).reshape({4, 6});
  const auto rolled = sa::jit([](const Array& v, const Array& by) { return sa::roll(v, by, 1); });
  for (const int by : {0, 1, -1, 5, 6, 13, -25}) {
    CAPTURE(by);
    CHECK(sa::array_equal(rolled(x, Array(by)), sa::roll(x, by, 1)));
    CHECK(sa::array_equal(sa::roll(x, Array(by).astype(sa::int8), -2), sa::roll(x, by, -2)));
    CHECK(sa::array_equal(sa::roll(x, Array(by).astype(sa::int64)), sa::roll(x, by)));
  }
  CHECK(sa::array_equal(sa::roll(x, Array(200).astype(sa::uint8), 0), sa::roll(x, 200, 0)));
  CHECK(sa::roll(sa::zeros({0, 3}), Array(2), 0).shape() == Shape{0, 3});
  const Array slope = sa::grad([&](const Array& v) { return sa::sum(rolled(v, Array(2)) * x); })(x);
  CHECK(sa::array_equal(slope, sa::roll(x, -2, 1)));
  CHECK(message_of<sa::DTypeError>([&] { (void)sa::roll(x, Array(2.0), 0); }) ==
        "roll: the shift is f32[]. It is a whole number. Convert it with astype(int32).");
  CHECK(message_of<sa::ShapeError>([&] { (void)sa::roll(x, sa::arange(2), 0); }) ==
        "roll: the shift is i32[2]. It is one number for all: a scalar. Roll once for each axis.");
}

TEST_CASE("rearranging: messages") {
  const Array x = sa::zeros({2, 3}), v = sa::zeros({3});
  CHECK_SAYS(sa::tile(x, -1), "tile: -1 times. The number is not negative. Use flip to reverse.",
             sa::ShapeError);
  CHECK_SAYS(sa::repeat(x, -2), "repeat: -2 times. The number is not negative. Use flip to reverse.",
             sa::ShapeError);
  CHECK_SAYS(
      sa::repeat(x, 2, 5),
      "repeat: axis 5 is out of bounds for shape [2,3] of rank 2. Axes count from 0, or from -1 at the end. "
      "Give one that the array has.",
      sa::ShapeError);
  CHECK_SAYS(sa::vstack({}), "vstack: no arrays. There must be at least one. Use zeros for an empty array.",
             sa::ShapeError);
  const std::vector<Array> others = {x, sa::zeros({4, 5})};
  const std::vector<std::pair<std::string, shardarray::testing::Erased<void()>>> joins = {
      {"concatenate", [&] { (void)sa::concatenate(others, 1); }},
      {"hstack", [&] { (void)sa::hstack(others); }},
      {"vstack", [&] { (void)sa::vstack(others); }},
      {"dstack", [&] { (void)sa::dstack(others); }},
      {"column_stack", [&] { (void)sa::column_stack(others); }},
      {"append", [&] { (void)sa::append(others[0], others[1], 1); }},
      {"stack", [&] { (void)sa::stack(others); }}};
  for (const auto& [name, join] : joins) {
    const std::string error = message_of<sa::ShapeError>(join);
    CHECK_MESSAGE(error.starts_with(name + ": shapes [2,3"), error);
  }
  CHECK_SAYS(sa::array_split(x, 0), "array_split: 0 pieces. There are 1 to 2^20. Give how many there are.",
             sa::ShapeError);
  CHECK_SAYS(
      sa::fliplr(v),
      "fliplr: axis 1 is out of bounds for shape [3] of rank 1. Axes count from 0, or from -1 at the end. "
      "Give one that the array has.",
      sa::ShapeError);
  CHECK_SAYS(sa::diagonal(x, 0, 1, -1),
             "diagonal: axes [1,1] name dimension 1 twice. Every axis may stand once. Remove one.",
             sa::ShapeError);
  CHECK_SAYS(sa::diag(sa::zeros({1, 1, 1})),
             "diag: the operand is f32[1,1,1]. A vector is put on a diagonal, of a matrix it is taken. Use "
             "diagonal, or reshape.",
             sa::ShapeError);
  CHECK_SAYS(sa::diag(v, std::numeric_limits<std::int64_t>::min()),
             "diag: diagonal -9223372036854775808. The result has as many rows more. Give a nearer one.",
             sa::ShapeError);
  CHECK_SAYS(sa::meshgrid({v, x}),
             "meshgrid: operand 1 is f32[2,3]. A grid has one vector for each dimension. Use ravel.",
             sa::ShapeError);
  CHECK_SAYS(sa::logspace(0, 1, -1),
             "logspace: num is -1. The number of values is not negative. Give how many there are.",
             sa::ShapeError);
  CHECK_SAYS(
      sa::geomspace(-1, 1),
      "geomspace: -1 to 1. The ratio of neighbours is a positive number. Give two numbers of one sign that "
      "are not 0.",
      sa::Error);
  CHECK_SAYS(
      sa::pad(sa::zeros({2, 0}), 1, sa::PadMode::wrap),
      "pad: f32[2,0] has no elements along axis 1. What is put there is one of them. Pad with a number.",
      sa::ShapeError);
}

}  // namespace rearrange_test

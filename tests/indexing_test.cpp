// Subscripts with arrays, updates by them, and positions that data says: types, edges, messages, random ones against loops; their
// values on shards: op_cases_indexing.cpp. Numbers that are written out are those of JAX 0.10.2.
#include "shardarray/indexing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "everywhere.h"
#include "messages.h"
#include "shardarray/grad.h"
#include "shardarray/jit.h"
#include "shardarray/placement.h"
#include "shardarray/vmap.h"

namespace indexing_test {

namespace sa = shardarray;
using sa::all;
using sa::array;
using sa::Array;
using sa::Index;
using sa::newaxis;
using sa::Shape;
using sa::slice;
using Values = std::vector<double>;
using shardarray::testing::message_of;
using shardarray::testing::values;

namespace {

constexpr double nan_ = std::numeric_limits<double>::quiet_NaN();

// --- subscripts by loops ---

/// One part of a subscript: an integer, a range of step 1, a new dimension, or positions of some shape.
struct Part {
  enum class Kind { at, range, newaxis, positions } kind;
  std::int64_t lo = 0, hi = 0;
  Shape shape;
  std::vector<int> at;
  std::int64_t size(std::size_t d, std::size_t rank) const {  // of dimension d of `rank` common ones
    const std::size_t missing = rank - shape.size();
    return d < missing ? 1 : shape[d - missing];
  }
  int position(const std::vector<std::int64_t>& common) const {
    std::int64_t flat = 0;
    const std::size_t missing = common.size() - shape.size();
    for (std::size_t d = 0; d < shape.size(); d++)
      flat = flat * shape[d] + (shape[d] == 1 ? 0 : common[d + missing]);
    return at[static_cast<std::size_t>(flat)];
  }
};

/// For each element of the result the flat position in x, or -1 for one that lies outside.
struct Chosen {
  Shape shape;
  std::vector<std::int64_t> from;
};
Chosen chosen(const std::vector<Part>& parts, const Shape& x, bool clips) {
  std::size_t rank = 0;
  for (const Part& p : parts) rank = std::max(rank, p.shape.size());
  Shape common = Shape::filled(rank, 1);
  for (const Part& p : parts)
    for (std::size_t d = 0; d < rank && p.kind == Part::Kind::positions; d++)
      common[d] = std::max(common[d], p.size(d, rank));
  bool has_zero = false;
  for (const Part& p : parts)
    for (const std::int64_t n : p.shape) has_zero = has_zero || n == 0;
  for (const Part& p : parts)
    for (std::size_t d = 0; d < rank && p.kind == Part::Kind::positions && has_zero; d++)
      if (p.size(d, rank) == 0) common[d] = 0;
  // where the common dimensions stand
  std::vector<std::size_t> choosers;
  for (std::size_t k = 0; k < parts.size(); k++)
    if (parts[k].kind == Part::Kind::positions || parts[k].kind == Part::Kind::at) choosers.push_back(k);
  const bool together = choosers.back() - choosers.front() + 1 == choosers.size();
  Chosen r;
  std::size_t common_at = 0;
  std::vector<std::size_t> own(parts.size());  // dimension of the result of a range
  if (!together) r.shape = common;
  for (std::size_t k = 0; k < parts.size(); k++) {
    if (together && k == choosers.front()) {
      common_at = r.shape.size();
      for (const std::int64_t n : common) r.shape.push_back(n);
    }
    own[k] = r.shape.size();
    if (parts[k].kind == Part::Kind::range) r.shape.push_back(parts[k].hi - parts[k].lo);
    if (parts[k].kind == Part::Kind::newaxis) r.shape.push_back(1);
  }
  std::int64_t count = 1;
  for (const std::int64_t n : r.shape) count *= n;
  for (std::int64_t e = 0; e < count; e++) {
    std::vector<std::int64_t> i(r.shape.size());
    std::int64_t rest = e;
    for (std::size_t d = i.size(); d-- > 0; rest /= r.shape[d]) i[d] = rest % r.shape[d];
    const std::vector<std::int64_t> mine(i.begin() + static_cast<std::ptrdiff_t>(common_at),
                                         i.begin() + static_cast<std::ptrdiff_t>(common_at + rank));
    std::int64_t flat = 0;
    bool inside = true;
    std::size_t dim = 0;
    for (std::size_t k = 0; k < parts.size(); k++) {
      const Part& p = parts[k];
      if (p.kind == Part::Kind::newaxis) continue;
      const std::int64_t n = x[dim++];
      std::int64_t at =
          p.kind == Part::Kind::at ? p.lo : p.lo + (p.kind == Part::Kind::range ? i[own[k]] : 0);
      if (p.kind == Part::Kind::positions) {
        at = p.position(mine);
        if (at < 0) at += n;
        inside = inside && at >= 0 && at < n;
        if (clips) at = std::clamp<std::int64_t>(at, 0, n - 1);
      }
      flat = flat * n + at;
    }
    r.from.push_back(inside || clips ? flat : -1);
  }
  return r;
}
sa::Indices indices_of(const std::vector<Part>& parts) {
  sa::Indices r;
  for (const Part& p : parts) {
    if (p.kind == Part::Kind::at) r.emplace_back(p.lo);
    if (p.kind == Part::Kind::range) r.push_back(slice(p.lo, p.hi));
    if (p.kind == Part::Kind::newaxis) r.push_back(newaxis);
    if (p.kind == Part::Kind::positions) r.emplace_back(sa::reshape(array(p.at, sa::int32), p.shape));
  }
  return r;
}
std::vector<Part> random_parts(std::mt19937& rng, const Shape& x, bool outside) {
  const auto pick = [&](std::int64_t lo, std::int64_t hi) {
    return lo + static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(hi - lo + 1));
  };
  const Shape shapes[] = {{}, {3}, {1}, {2, 3}, {2, 1}, {0}};
  const bool empty = rng() % 20 == 0;
  std::vector<Part> parts;
  const auto must = static_cast<std::size_t>(pick(0, std::ssize(x) - 1));
  for (std::size_t d = 0; d < x.size(); d++) {
    if (rng() % 6 == 0) parts.push_back({Part::Kind::newaxis, 0, 0, {}, {}});
    const auto kind = d == must ? 0 : rng() % 4;
    if (kind < 2) {
      Part p{Part::Kind::positions, 0, 0, shapes[empty ? 5 : rng() % 5], {}};
      std::int64_t count = 1;
      for (const std::int64_t n : p.shape) count *= n;
      for (std::int64_t k = 0; k < count; k++)
        p.at.push_back(static_cast<int>(outside ? pick(-x[d] - 2, x[d] + 1) : pick(-x[d], x[d] - 1)));
      parts.push_back(std::move(p));
    } else if (kind == 2) {
      parts.push_back({Part::Kind::at, pick(0, x[d] - 1), 0, {}, {}});
    } else {
      const std::int64_t lo = rng() % 2 ? 0 : pick(0, x[d] - 1), hi = rng() % 2 ? x[d] : pick(lo, x[d]);
      parts.push_back({Part::Kind::range, lo, hi, {}, {}});
    }
  }
  return parts;
}

}  // namespace

TEST_CASE("indexing: the shapes of subscripts with arrays are NumPy's") {
  const Array y = sa::reshape(sa::arange(24), {2, 3, 4}), i = array({0, 1, 1}), one = array(1);
  CHECK(y[{0, all, i}].shape() == Shape{3, 3});
  CHECK(y[{all, 0, i}].shape() == Shape{2, 3});
  CHECK(y[{i, all, 0}].shape() == Shape{3, 3});
  CHECK(y[{newaxis, i}].shape() == Shape{1, 3, 3, 4});
  CHECK(y[{i, newaxis, 0}].shape() == Shape{3, 1, 4});
  CHECK(y[{sa::ellipsis, i}].shape() == Shape{2, 3, 3});
  CHECK(y[{all, i, i}].shape() == Shape{2, 3});
  CHECK(y[{sa::reshape(i, {3, 1}), i}].shape() == Shape{3, 3, 4});
  CHECK(y[{slice(1, sa::none), i, newaxis}].shape() == Shape{1, 3, 1, 4});
  CHECK(y[one].shape() == Shape{3, 4});
  CHECK(y[{one, all, i}].shape() == Shape{3, 3});
  CHECK(values(y[{0, all, i}]) == Values{0, 4, 8, 1, 5, 9, 1, 5, 9});
  CHECK(values(y[{all, 0, i}]) == Values{0, 1, 1, 12, 13, 13});
  // an expression may be what chooses, and be gone when the part is read
  const auto part = sa::arange(5.0).at(i + 1);
  CHECK(values(part.get()) == Values{1, 2, 2});
}

TEST_CASE("indexing: random subscripts with arrays against loops") {
  std::mt19937 rng(11);
  for (int round = 0; round < 150; round++) {
    Shape shape;
    for (auto d = 1 + rng() % 3; d > 0; d--) shape.push_back(1 + static_cast<std::int64_t>(rng() % 4));
    std::int64_t n = 1;
    for (const std::int64_t s : shape) n *= s;
    std::vector<int> host(static_cast<std::size_t>(n));
    for (int& v : host) v = static_cast<int>(rng() % 19) - 9;
    const Array x = sa::reshape(array(host, sa::int32), shape);
    const bool outside = round % 2 == 1;
    const std::vector<Part> parts = random_parts(rng, shape, outside);
    const sa::Indices at = indices_of(parts);
    CAPTURE(round);
    const Chosen clipped = chosen(parts, shape, true), dropped = chosen(parts, shape, false);
    const Array got = x[at];
    REQUIRE(got.shape() == clipped.shape);
    const auto read = got.to_vector<int>();
    for (std::size_t e = 0; e < read.size(); e++)
      REQUIRE(read[e] == host[static_cast<std::size_t>(clipped.from[e])]);
    const auto filled = x.at(at).get({.mode = sa::TakeMode::fill, .fill_value = 77}).to_vector<int>();
    for (std::size_t e = 0; e < filled.size(); e++)
      REQUIRE(filled[e] == (dropped.from[e] < 0 ? 77 : host[static_cast<std::size_t>(dropped.from[e])]));
    // updates: values of the part's shape, or one number
    std::vector<int> with(clipped.from.size());
    for (int& v : with) v = static_cast<int>(rng() % 7) - 3;
    const bool number = rng() % 3 == 0;
    if (number && !with.empty()) std::fill(with.begin(), with.end(), with[0]);
    const Array v =
        number ? Array(with.empty() ? 0 : with[0]) : sa::reshape(array(with, sa::int32), clipped.shape);
    using Change = std::function<int(int, int)>;
    const auto check = [&](const Array& result, const Chosen& c, const Change& change) {
      std::vector<int> want = host;
      for (std::size_t e = 0; e < c.from.size(); e++)
        if (c.from[e] >= 0) {
          int& to = want[static_cast<std::size_t>(c.from[e])];
          to = change(to, with[e]);
        }
      REQUIRE(result.to_vector<int>() == want);
    };
    const auto part = x.at(at);
    check(part.set(v), dropped, [](int, int b) { return b; });
    check(part.set(v, {.mode = sa::TakeMode::clip}), clipped, [](int, int b) { return b; });
    check(part.add(v), dropped, [](int a, int b) { return a + b; });
    check(part.mul(v), dropped, [](int a, int b) { return a * b; });
    check(part.min(v), dropped, [](int a, int b) { return std::min(a, b); });
    check(part.max(v), dropped, [](int a, int b) { return std::max(a, b); });
  }
}

TEST_CASE("indexing: what lies outside") {
  const Array x = sa::arange(5.0), i = array({7, -6, -1, -5});
  CHECK(values(x[i]) == Values{4, 0, 4, 0});
  const Values filled = values(x.at(i).get({.mode = sa::TakeMode::fill}));
  CHECK(std::isnan(filled[0]));
  CHECK(std::isnan(filled[1]));
  CHECK(filled[2] == 4);
  CHECK(values(x.at(array({7, -6})).get({.mode = sa::TakeMode::fill, .fill_value = 9})) == Values{9, 9});
  CHECK(values(x.at(array({7, -6, 6})).get({.mode = sa::TakeMode::wrap})) == Values{2, 4, 1});
  CHECK(values(sa::take(x, array({7, -6, 6}), 0, sa::TakeMode::wrap)) == Values{2, 4, 1});
  CHECK(values(x.at(array({7, -6, -1})).set(9.0)) == Values{0, 1, 2, 3, 9});
  CHECK(values(x.at(array({7, -6})).set(9.0, {.mode = sa::TakeMode::clip})) == Values{9, 1, 2, 3, 9});
  CHECK(values(x.at(array({1, 1, 1})).set(array({7.0, 8.0, 9.0}))) == Values{0, 9, 2, 3, 4});
  CHECK(values(x.at(array({1, 1})).mul(3.0)) == Values{0, 9, 2, 3, 4});
  for (const sa::DType t : {sa::int8, sa::uint8, sa::int64, sa::uint64})
    CHECK(values(x[array({1, 3}).astype(t)]) == Values{1, 3});
}

TEST_CASE("indexing: masks choose what is true; one value for all needs no values of theirs") {
  const Array x = sa::arange(5.0), y = sa::reshape(sa::arange(24), {2, 3, 4});
  CHECK(y[array({true, false})].shape() == Shape{1, 3, 4});
  CHECK(y[{all, array({true, false, true})}].shape() == Shape{2, 2, 4});
  CHECK(y[y > 5].shape() == Shape{18});
  CHECK(values(x[x > 2]) == Values{3, 4});
  CHECK(values(x.at(x > 2).set(0.0)) == Values{0, 1, 2, 0, 0});
  CHECK(values(x.at(x > 2).set(array({5.0, 6.0}))) == Values{0, 1, 2, 5, 6});
  CHECK(values(x.at(x > 2).add(1.0)) == Values{0, 1, 2, 4, 5});
  CHECK(values(y.at(array({false, true})).set(array({1, 2, 3, 4})))[14] == 3);
  CHECK(values(sa::jit([](const Array& a) { return a.at(a > 2).mul(10.0); })(x)) == Values{0, 1, 2, 30, 40});
  CHECK(message_of<sa::TraceError>([&] { (void)sa::jit([](const Array& a) { return a[a > 2]; })(x); })
            .find("index: the mask bool[5] has no value while the function is traced. It chooses as many "
                  "elements "
                  "as its values say. Choose between values with where(mask, a, b), or take positions from "
                  "nonzero(mask, size).") == 0);
  CHECK(values(x.at(sa::zeros({5}, sa::bool_)).get()).empty());
  CHECK_THROWS_AS((void)sa::dynamic_update_slice(sa::zeros({}, sa::int8), 300, {}), sa::DTypeError);
}

TEST_CASE("indexing: derivatives") {
  const Array x = sa::arange(5.0), i = array({0, 1, 1});
  const auto slope = [](auto f, const Array& at) {
    return values(sa::grad([&](const Array& v) { return sa::sum(f(v)); })(at));
  };
  const Values third = slope([&](const Array& v) { return x.at(i).max(v); }, sa::ones({3}));
  CHECK(third[0] == 1);
  CHECK(third[1] == doctest::Approx(1 / 3.0));
  CHECK(third[2] == doctest::Approx(1 / 3.0));
  CHECK(slope([&](const Array& v) { return x.at(i).set(v); }, sa::ones({3})) == Values{1, 0, 1});
  CHECK(slope([&](const Array& v) { return x.at(i).add(v * v); }, array({1.0, 2.0, 3.0})) == Values{2, 4, 6});
  CHECK(slope([&](const Array& a) { return a.at(i).mul(2.0); }, x) == Values{2, 4, 1, 1, 1});
  CHECK(slope([&](const Array& v) { return sa::ones({5}).at(i).mul(v); }, array({2.0, 3.0, 0.0})) ==
        Values{1, 0, 3});
  CHECK(slope(
            [&](const Array& a) {
              return a[i] * array({1.0, 10.0, 100.0});
            },
            x) == Values{1, 110, 0, 0, 0});
  CHECK(slope([&](const Array& a) { return a.at(i).set(0.0); }, x) == Values{0, 0, 1, 1, 1});
  CHECK(slope([&](const Array& a) { return a.at(a > 2).set(0.0); }, x) == Values{1, 1, 1, 0, 0});
  // what is no number has the derivative of an element where nothing is updated, and no share elsewhere
  CHECK(slope([&](const Array& a) { return a.at(array({1})).max(3.0); }, array({nan_, 1.0})) == Values{1, 0});
  // an update that is dropped has none
  for (auto f : {+[](const Array& v) {
                   return sa::ones({2}).at(array({0, 9})).max(v);
                 },
                 +[](const Array& v) {
                   return sa::ones({2}).at(array({0, 9})).mul(v);
                 },
                 +[](const Array& v) {
                   return sa::ones({2}).at(array({0, 9})).set(v);
                 }})
    CHECK(slope(f, array({2.0, 2.0})) == Values{1, 0});
}

TEST_CASE("indexing: bools are added as or and multiplied as and; 16-bit floats are rounded once") {
  const Array flags = array({true, false, true}), i = array({0, 1, 2});
  CHECK(values(flags.at(i).add(array({false, true, false}))) == Values{1, 1, 1});
  CHECK(values(flags.at(i).mul(array({false, true, true}))) == Values{0, 0, 1});
  CHECK(values(flags.at(i).max(array({false, true, false}))) == Values{1, 1, 1});
  CHECK(flags.at(i).set(false).dtype() == sa::bool_);
  // 256 + 1 + 1 in bfloat16, step by step 256
  const Array big = sa::full({1}, 256.0, sa::bfloat16), zeros = array({0, 0});
  CHECK(values(big.at(zeros).add(array({1.0, 1.0}))) == Values{258});
}

TEST_CASE("indexing: positions of what is not zero, compress, extract") {
  const Array m = array({{0, 1}, {2, 0}});
  const auto at = sa::nonzero(m, 3);
  CHECK(values(at[0]) == Values{0, 1, 0});
  CHECK(values(at[1]) == Values{1, 0, 0});
  CHECK(values(sa::nonzero(m)[1]) == Values{1, 0});
  CHECK(values(sa::nonzero(array({0, 3, 0, 4}), 3, -1)[0]) == Values{1, 3, -1});
  CHECK(values(sa::argwhere(m, 3)) == Values{0, 1, 1, 0, 0, 0});
  CHECK(values(sa::flatnonzero(array({0, 1, 1}), 1)) == Values{1});
  CHECK(values(sa::flatnonzero(sa::zeros({0}), 2, 5)) == Values{5, 5});
  const Array x = sa::arange(5.0), y = sa::reshape(sa::arange(24), {2, 3, 4});
  CHECK(sa::compress(array({true, false, true}), y, 2, 1).shape() == Shape{2, 2, 4});
  CHECK(values(sa::compress(array({true, false, true, true}), x, 2)) == Values{0, 2});
  CHECK(values(sa::extract(x > 1, x, 2, 7)) == Values{2, 3});
  CHECK(values(sa::extract(x > 3, x, 3, 7)) == Values{4, 7, 7});
}

TEST_CASE("indexing: choose, put_along_axis, positions in several dimensions") {
  const Array i = array({0, 1, 5}), a = array({1, 2, 3}), b = array({4, 5, 6});
  CHECK(values(sa::choose(i, {a, b})) == Values{1, 5, 6});
  CHECK(values(sa::choose(i, {a, b}, sa::TakeMode::wrap)) == Values{1, 5, 6});
  CHECK(values(sa::choose(array({0, -1}), {Array(1.5), Array(2)}, sa::TakeMode::wrap)) == Values{1.5, 2});
  const Array y = sa::reshape(sa::arange(12), {3, 4});
  CHECK(values(sa::put_along_axis(y, array({{0}, {1}, {2}}), 99, 1)) ==
        Values{99, 1, 2, 3, 4, 99, 6, 7, 8, 9, 99, 11});
  CHECK(values(sa::put_along_axis(y, array({{-1}}), 7, 0)) == Values{0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7});
  CHECK(values(sa::put_along_axis(sa::arange(3), array({1, 9, 1}), array({5, 6, 7}), 0)) == Values{0, 7, 2});
  const auto at = sa::unravel_index(array({3, 5, -1, 99}), {2, 3});
  CHECK(values(at[0]) == Values{1, 1, 1, 1});
  CHECK(values(at[1]) == Values{0, 2, 2, 2});
  CHECK(values(sa::ravel_multi_index({array({0, 1}), array({2, 1})}, {2, 3})) == Values{2, 4});
  CHECK(values(sa::ravel_multi_index({array({0, 9}), array({2, -1})}, {2, 3})) == Values{2, 3});
}

TEST_CASE("indexing: parts that begin where data says") {
  const Array x = sa::arange(5.0), y = sa::reshape(sa::arange(12.0), {3, 4});
  CHECK(values(sa::dynamic_slice(x, {4}, {2})) == Values{3, 4});
  CHECK(values(sa::dynamic_slice(x, {-2}, {2})) == Values{3, 4});
  CHECK(values(sa::dynamic_slice(x, {-7}, {2})) == Values{0, 1});
  CHECK(values(sa::dynamic_update_slice(x, array({8.0, 9.0}), {4})) == Values{0, 1, 2, 8, 9});
  CHECK(values(sa::dynamic_slice(y, {1, 2}, {2, 2})) == Values{6, 7, 10, 11});
  CHECK(values(sa::dynamic_update_slice(y, -sa::ones({2, 1}), {1, 3})) ==
        Values{0, 1, 2, 3, 4, 5, 6, -1, 8, 9, 10, -1});
  CHECK(values(sa::dynamic_slice_in_dim(y, 1, 2, 1)) == Values{1, 2, 5, 6, 9, 10});
  CHECK(values(sa::dynamic_update_slice_in_dim(y, sa::zeros({3, 1}), 0, 1))[4] == 0);
  CHECK(sa::dynamic_index_in_dim(y, 2).shape() == Shape{1, 4});
  CHECK(values(sa::dynamic_index_in_dim(y, -1, 1, false)) == Values{3, 7, 11});
  CHECK(sa::dynamic_slice(y, {0, 0}, {0, 4}).shape() == Shape{0, 4});
  const auto f = sa::jit([](const Array& a, const Array& s) { return sa::dynamic_slice_in_dim(a, s, 2); });
  for (int s = 0; s < 4; s++)
    CHECK(values(f(x, array(s))) == Values{static_cast<double>(s), static_cast<double>(s + 1)});
  const auto rows =
      sa::vmap([&](const Array& s) { return sa::dynamic_slice_in_dim(x, s, 2); })(array({0, 3}));
  CHECK(values(rows) == Values{0, 1, 3, 4});
}

// Values: jax 0.10.2
TEST_CASE("indexing: divide and power take the product of what one position is given, as in JAX") {
  const Array x = array({2.0, 3.0, 4.0, 5.0}), i = array({1, 1, 2});
  CHECK(values(x.at(i).divide(array({2.0, 4.0, 8.0}))) == Values{2, 0.375, 0.5, 5});
  CHECK(values(x.at(i).power(array({2.0, 3.0, 0.5}))) == Values{2, 729, 2, 5});
  const Array whole = array({2, 3, 4, 5});
  CHECK(values(whole.at(1).divide(2)) == Values{2, 1.5, 4, 5});
  CHECK(whole.at(1).divide(2).dtype() == sa::float32);
  CHECK(values(whole.at(1).power(2)) == Values{2, 9, 4, 5});
  CHECK(whole.at(1).power(2).dtype() == sa::int32);
  CHECK(values(x.at(array({9, -1})).divide(2.0)) == Values{2, 3, 4, 2.5});
  CHECK(values(x.at(x > 3).power(2.0)) == Values{2, 3, 16, 25});
  CHECK(values(array({0.0, 0.0}).at(0).power(-1.0))[0] == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(values(array({0.0, 1.0}).at(0).divide(0.0))[0]));
  const auto slopes = [](auto f, const Array& a, const Array& v) {
    const auto [da, dv] =
        sa::grad([&](const Array& p, const Array& q) { return sa::sum(f(p, q)); }, {.argnums = {0, 1}})(a, v);
    Values r = values(da);
    for (const double d : values(dv)) r.push_back(d);
    return r;
  };
  const Array rows = array({1, 3}), v = array({2.0, 4.0});
  CHECK(slopes([&](auto a, auto b) { return a.at(rows).divide(b); }, x, v) ==
        Values{1, 0.5, 1, 0.25, -0.75, -0.3125});
  const Values of_power = slopes([&](auto a, auto b) { return a.at(rows).power(b); }, x, v);
  const Values want{1, 6, 1, 500, 9.88751, 1005.89874};
  for (std::size_t k = 0; k < want.size(); k++) CHECK(of_power[k] == doctest::Approx(want[k]).epsilon(1e-6));
  // an element that stays has its own slope, whatever its sign
  CHECK(slopes([](auto a, auto b) { return a.at(0).power(b); }, array({3.0, -2.0, 0.0}), array(2.0))[1] == 1);
  CHECK(message_of<sa::DTypeError>([&] { (void)whole.at(0).divide(2.5); }).find("at.divide: ") == 0);
  CHECK(message_of<sa::ShapeError>([&] { (void)x.at(0).power(v); }).find("at.power: ") == 0);
  CHECK(message_of<sa::Error>([&] { (void)Array().at(0).power(2); }).find("at.power: ") == 0);
}

TEST_CASE("indexing: messages") {
  const Array x = sa::arange(5.0), y = sa::reshape(sa::arange(12), {3, 4});
  const auto says = [](auto f, const std::string& text) {
    const std::string m = message_of<sa::Error>(f);
    CHECK_MESSAGE(m.find(text) == 0, m);
  };
  says([&] { (void)x[x]; }, "index: the operand is f32[5]. Indices are integers.");
  says([&] { (void)x[{array({0}), array({0})}]; }, "index: 2 indices for shape [5] of rank 1.");
  says(
      [&] {
        (void)y[{array({0, 1}), array({0, 1, 2})}];
      },
      "index: shapes [2], [3] cannot be broadcast together: sizes 2 and 3 meet.");
  says(
      [&] {
        (void)y[array({true, false})];
      },
      "index: a mask of shape [2] from dimension 0 of shape [3,4] on. It has an element for each one there. "
      "Give one that fits.");
  says([&] { (void)y.at(array({true, false})).set(1); }, "at.set: a mask of shape [2] from dimension 0");
  says([&] { (void)y[array(true)]; },
       "index: a mask without dimensions. It stands for those whose elements it chooses. Use where.");
  says(
      [&] {
        (void)sa::zeros({0, 3})[array({0})];
      },
      "index: f32[0,3] has no elements along axis 0 for 1 index.");
  says([&] { (void)y.at(array({0})).set(2.5); },
       "at.set: f32[] in an array i32[3,4]. Fractions would be lost");
  says(
      [&] {
        (void)y.at(array({0, 1})).add(sa::ones({3, 4}, sa::int32));
      },
      "at.add: shapes [3,4], [2,4] cannot be broadcast together: sizes 3 and 2 meet.");
  says([&] { (void)sa::nonzero(Array(1), 3); },
       "nonzero: a scalar. It has no dimension for a position. Reshape it to (1).");
  says([&] { (void)sa::argwhere(Array(1), 3); }, "argwhere: a scalar.");
  says([&] { (void)sa::nonzero(x, 7, std::int64_t{1} << 40); },
       "nonzero: fill_value 1099511627776 among positions of int32. It is one of its values. Give another "
       "one.");
  says([&] { (void)y.at(array({9})).get({.mode = sa::TakeMode::fill, .fill_value = 2.5}); },
       "at.get: fill_value 2.5 in an array i32[1,4]. It is one of its values. Give another one.");
  says([&] { (void)sa::compress(sa::ones({5}), x.astype(sa::uint8), 2, 0, -1); },
       "compress: fill_value -1 in an array u8[2]. It is one of its values. Give another one.");
  says([&] { (void)sa::extract(x > 1, x, -1); }, "extract: size -1.");
  says([&] { (void)sa::unravel_index(array({5}), {-2, -3}); }, "unravel_index: positions in shape [-2,-3].");
  says([&] { (void)sa::ravel_multi_index({1, 1}, {0, 3}); }, "ravel_multi_index: positions in shape [0,3].");
  says(
      [&] {
        (void)x[{array({0}), array({0}), array({true, false})}];
      },
      "index: 3 indices for shape [5] of rank 1.");
  says([&] { (void)sa::nonzero(x, -1); },
       "nonzero: size -1. The number of positions is not negative. Give how many there are at most.");
  says([&] { (void)sa::compress(sa::ones({6}), x, 2); },
       "compress: a condition of shape [6] for 5 elements. It is a vector that is not longer. Use extract "
       "for all "
       "elements of an array.");
  says([&] { (void)sa::extract(y, x, 2); },
       "extract: a condition of shape [3,4] for shape [5]. They are equal. Broadcast one.");
  says([&] { (void)sa::unravel_index(array({1}), {}); },
       "unravel_index: positions in shape []. It has dimensions, and elements. Give another one.");
  says(
      [&] {
        (void)sa::ravel_multi_index({array({1})}, {2, 3});
      },
      "ravel_multi_index: 1 position in shape [2,3]. There is one for each dimension. Give as many.");
  says([&] { (void)sa::put_along_axis(y, array({0}), 1, 0); },
       "put_along_axis: an index i32[1] of i32[3,4]. Both have one rank. Use x.at(index) for one index "
       "of all "
       "rows.");
  says([&] { (void)sa::choose(array({0}), {}); },
       "choose: no choices. An index needs an element. Give one at least.");
  says(
      [&] {
        (void)sa::dynamic_slice(x, {0, 0}, {2});
      },
      "dynamic_slice: 2 starts and 1 size for shape [5]. There is one of each for a dimension. Give as "
      "many.");
  says([&] { (void)sa::dynamic_slice(x, {0}, {6}); },
       "dynamic_slice: a part of size 6 of a dimension of size 5. It is no larger. Give a smaller size.");
  says([&] { (void)sa::dynamic_slice(x, {array({0})}, {2}); },
       "dynamic_slice: a start i32[1]. It is a scalar for each dimension. Take its elements.");
}

}  // namespace indexing_test

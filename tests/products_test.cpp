// Products of vectors and matrices, functions of samples: types, edges and messages; their values on shards: op_cases_products.cpp.
#include "shardarray/products.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "messages.h"
#include "op_data.h"
#include "program_of.h"
#include "shardarray/shardarray.h"

namespace products_test {

namespace sa = shardarray;
using sa::array;
using sa::Array;
using sa::Shape;
using Values = std::vector<double>;
using shardarray::testing::message_of;
using shardarray::testing::values;

namespace {}  // namespace

TEST_CASE("products: shapes and types of outer, inner, vdot, kron, cross") {
  const Array x = sa::ones({2, 3}), i = array({1, 2});
  CHECK(sa::outer(x, i).shape() == Shape{6, 2});
  CHECK(sa::outer(i, i).dtype() == sa::int32);
  CHECK(values(sa::outer(array({true, false}), array({true, true}))) == Values{1, 1, 0, 0});
  CHECK(values(sa::inner(x, 2.0)) == Values(6, 2.0));
  CHECK(sa::inner(x, x).shape() == Shape{2, 2});
  CHECK(values(sa::vdot(x, sa::ones({3, 2}))) == Values{6});
  CHECK(values(sa::vdot(Array(3), Array(4))) == Values{12});
  CHECK(sa::kron(x, i).shape() == Shape{2, 6});
  CHECK(values(sa::kron(i, array({0.5, 1.0}))) == Values{0.5, 1, 1, 2});
  CHECK(values(sa::cross(array({1, 0, 0}), array({0, 1, 0}))) == Values{0, 0, 1});
  CHECK(values(sa::cross(array({1, 2}), array({3, 4}))) == Values{-2});
}

TEST_CASE("products: powers and chains") {
  const Array m = array({{1, 1}, {0, 1}});
  CHECK(values(sa::matrix_power(m, 0)) == Values{1, 0, 0, 1});
  CHECK(values(sa::matrix_power(m, 5)) == Values{1, 5, 0, 1});
  CHECK(sa::matrix_power(m, 0).dtype() == sa::int32);
  CHECK(values(sa::matrix_power(m, -3)) == Values{1, -3, 0, 1});
  CHECK(sa::matrix_power(m, -1).dtype() == sa::float32);
  CHECK(sa::matrix_power(sa::zeros({3, 2, 2}), 0).shape() == Shape{3, 2, 2});
  // the order that multiplies fewest never makes the large matrix
  const Array column = sa::ones({300, 1}), row = sa::ones({1, 300});
  for (const Array& chain : {sa::multi_dot({column, row, column}), sa::multi_dot({row, column, row})}) {
    std::int64_t largest = 0;
    shardarray::testing::each_node(std::span(&chain, 1), [&](sa::Node& n) {
      largest = std::max(largest, sa::num_elements(n.type().shape));
    });
    CHECK(largest == 300);
    CHECK(values(chain) == Values(300, 300.0));
  }
  // the dtype of all operands holds what that of some neighbours does not
  const Array wide = sa::ones({2, 2}), narrow = sa::full({2, 2}, 100, sa::int8);
  for (const std::vector<Array>& chain :
       {std::vector{wide, narrow, narrow}, std::vector{narrow, wide, narrow},
        std::vector{narrow, narrow, wide}}) {
    CHECK(values(sa::multi_dot(chain)) == Values(4, 40000.0));
    CHECK(sa::multi_dot(chain).dtype() == sa::float32);
  }
  CHECK(sa::multi_dot({narrow, narrow, narrow[0]}).dtype() == sa::int8);
  CHECK(sa::multi_dot({sa::ones({3}), sa::ones({3, 2})}).shape() == Shape{2});
  CHECK(sa::multi_dot({sa::ones({2, 3}), sa::ones({3})}).shape() == Shape{2});
}

TEST_CASE("samples: types and edges") {
  CHECK(values(sa::diff(array({1, 4, 9}))) == Values{3, 5});
  CHECK(values(sa::diff(array({1, 4, 9}), 0)) == Values{1, 4, 9});
  CHECK(sa::diff(array({1, 4, 9}), 5).shape() == Shape{0});
  CHECK(values(sa::diff(array({true, true, false}))) == Values{0, 1});
  CHECK(values(sa::gradient(array({1, 4}))) == Values{3, 3});
  CHECK(sa::gradient(array({1, 4})).dtype() == sa::float32);
  CHECK(values(sa::trapezoid(array({1, 2, 3}))) == Values{4});
  CHECK(values(sa::trapezoid(array({1, 2, 3}), 2)) == Values{8});
  CHECK(values(sa::trapezoid(array({1, 2, 3}), array({0, 1, 3}))) == Values{6.5});
  CHECK(values(sa::trapezoid(sa::zeros({1}))) == Values{0});
  CHECK(values(sa::polyval(array({1, 0, -1}), array({2, 3}))) == Values{3, 8});
  CHECK(sa::polyval(array({1, 0, -1}), array({2, 3})).dtype() == sa::int32);
  CHECK(values(sa::polyval(sa::zeros({0}), array({2.0}))) == Values{0});
}

TEST_CASE("samples: interp between, at and beyond its places") {
  const Array places = array({0, 1, 3}), heights = array({10, 20, 0});
  const Array x = array({-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0});
  CHECK(values(sa::interp(x, places, heights)) == Values{10, 10, 15, 20, 10, 0, 0});
  const Values beyond = values(sa::interp(x, places, heights, {.left = -1, .right = 7}));
  CHECK(beyond.front() == -1);
  CHECK(beyond.back() == 7);
  CHECK(beyond[1] == 10);
  CHECK(values(sa::interp(array({5, 6}), array({1}), array({2}))) == Values{2, 2});
  CHECK(sa::interp(x.astype(sa::float16), places, heights).dtype() == sa::float16);
  // a step: two samples at one place
  CHECK(values(sa::interp(array({0.5, 1.5}), array({0, 1, 1, 2}), array({0, 0, 8, 8}))) == Values{0, 8});
  CHECK(values(sa::grad([&](const Array& at) { return sa::sum(sa::interp(at, places, heights)); })(
            array({0.5, 2.0, 9.0}))) == Values{10, -10, 0});
}

TEST_CASE("samples: convolutions of integers and of short lines") {
  const Array a = array({1, 2, 3, 2, 1}), b = array({4, 1, 2});
  CHECK(values(sa::convolve(a, b)) == Values{4, 9, 16, 15, 12, 5, 2});
  CHECK(sa::convolve(a, b).dtype() == sa::float32);
  CHECK(values(sa::convolve(b, a, sa::ConvolveMode::same)) == Values{9, 16, 15, 12, 5});
  CHECK(values(sa::convolve(a, b, sa::ConvolveMode::valid)) == Values{16, 15, 12});
  CHECK(values(sa::correlate(a, b)) == Values{12, 15, 16});
  CHECK(values(sa::correlate(b, a)) == Values{16, 15, 12});
  CHECK(values(sa::correlate(a, b, sa::ConvolveMode::full)) == Values{2, 5, 12, 15, 16, 9, 4});
  CHECK(values(sa::convolve(array({2}), array({3}))) == Values{6});
}

TEST_CASE("samples: of a long convolution borders move, and nothing is stored for every pair of elements") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  for (const std::int64_t m : {33, 64, 100, 300})
    for (const auto mode : {sa::ConvolveMode::full, sa::ConvolveMode::valid}) {
      const auto convolved =
          sa::jit([=](const Array& a, const Array& b) { return sa::convolve(a, b, mode); });
      const Array line = program_test::placed({8192}, sa::NamedSharding(mesh, sa::P("x"))),
                  few = program_test::placed({m}, sa::NamedSharding(mesh, sa::P()), 1);
      program_test::check_received(convolved, line, few);
      std::int64_t bytes = 0;
      for (const sa::TransferInfo& t : sa::explain(convolved, line, few).transfers()) {
        CHECK(t.kind == "exchange");
        bytes += t.bytes_per_device;
      }
      CHECK(bytes < 4096 + 8 * m);  // a tile has 4096, its border 4 * m
      CHECK(sa::explain(convolved, line, few).peak_bytes_per_device < 24 * 4096);
      const Values a = values(line), b = values(few), got = values(convolved(line, few));
      const std::int64_t first = mode == sa::ConvolveMode::full ? 0 : m - 1;
      bool is_sum = true;
      for (std::size_t i = 0; i < got.size(); i++) {
        double want = 0;
        for (std::int64_t k = 0; k < m; k++) {
          const std::int64_t at = static_cast<std::int64_t>(i) + first - k;
          if (at >= 0 && at < 8192) want += a[static_cast<std::size_t>(at)] * b[static_cast<std::size_t>(k)];
        }
        is_sum = is_sum && got[i] == want;
      }
      CHECK(is_sum);
    }
  // nor for the gradient
  const Array line = program_test::placed({8192}, sa::NamedSharding(mesh, sa::P("x"))),
              weights = program_test::placed({8192}, sa::NamedSharding(mesh, sa::P("x")), 2),
              few = program_test::placed({100}, sa::NamedSharding(mesh, sa::P()), 1);
  const auto slope = sa::jit([](const Array& a, const Array& b, const Array& w) {
    return sa::grad([&](const Array& v) { return sa::sum(sa::convolve(v, b, sa::ConvolveMode::same) * w); })(
        a);
  });
  CHECK(values(slope(line, few, weights)) ==
        values(sa::correlate(sa::pad(weights, {{49, 50}}), few, sa::ConvolveMode::valid)));
  std::int64_t moved = 0;
  for (const sa::TransferInfo& t : sa::explain(slope, line, few, weights).transfers()) {
    CHECK(t.kind == "exchange");
    moved += t.bytes_per_device;
  }
  CHECK(moved < 4096);
  CHECK(sa::explain(slope, line, few, weights).peak_bytes_per_device < 24 * 4096);
  // an infinite element reaches no further than the other line is long
  const Values far =
      values(sa::convolve(sa::where(sa::arange(200) == 100, INFINITY, sa::ones({200})), sa::ones({40})));
  for (std::size_t i = 0; i < far.size(); i++) CHECK(std::isinf(far[i]) == (i >= 100 && i < 140));
  const auto lines = std::pair{sa::ones({20000}), sa::ones({300})};
  CHECK(sa::explain(sa::jit([](const Array& a, const Array& b) { return sa::correlate(a, b); }), lines.first,
                    lines.second)
            .peak_bytes_per_device < 10 * 80000);
}

TEST_CASE("products: of what is cut only borders, partial results and counts move") {
  const auto cut = [](const sa::P& spec) { return sa::NamedSharding(sa::make_mesh({{"x", 8}}), spec); };
  const Array line = program_test::placed({1024}, cut(sa::P("x"))),
              few = program_test::placed({5}, cut(sa::P())),
              rows = program_test::placed({64, 64}, cut(sa::P("x"))),
              ids = sa::device_put(sa::arange(64) % 4, cut(sa::P("x")));
  const auto convolved = sa::jit([](const Array& a, const Array& b) { return sa::convolve(a, b); });
  program_test::check_received(convolved, line, few);
  std::int64_t bytes = 0;
  for (const sa::TransferInfo& t : sa::explain(convolved, line, few).transfers()) {
    CHECK(t.kind == "exchange");
    bytes += t.bytes_per_device;
  }
  CHECK(bytes < 200);  // of 3,584 that a device lacks
  using program_test::planned;
  CHECK(planned([](const Array& x) { return sa::diff(x); }, line) == "exchange{x} 4");
  CHECK(planned([](const Array& x) { return sa::repeat(x, 3); }, line) == "");
  CHECK(planned([](const Array& x) { return sa::diagonal(x); }, rows) == "");
  CHECK(planned([](const Array& x) { return sa::trace(x); }, rows) == "all_reduce{x} 7");
  CHECK(planned([](const Array& x) { return sa::top_k(x, 2).first; }, rows) == "");
  // The largest of each column, then its first place.
  CHECK(planned([](const Array& x) { return sa::argmax(x, 0); }, rows) ==
        "all_reduce{x} 448, all_reduce{x} 448");
  CHECK(planned([](const Array& x, const Array& places) { return sa::searchsorted(places, x); }, line, few) ==
        "");
  CHECK(planned([](const Array& x, const Array& i) { return sa::segment_sum(x, i, 4); }, rows, ids) ==
        "all_reduce{x} 1792");
}

TEST_CASE("products: einsum broadcasts dimensions of size 1 as NumPy does") {
  const Array row = sa::arange(4.0F).reshape({1, 4}), m = sa::arange(12.0F).reshape({3, 4}),
              column = sa::arange(3.0F).reshape({3, 1});
  CHECK(sa::array_equal(sa::einsum("ij,ij->ij", row, m), row * m));
  CHECK(sa::array_equal(sa::einsum("ij,ij->i", m, row), sa::sum(row * m, 1)));
  CHECK(sa::array_equal(sa::einsum("ij,ij->ij", row, column), row * column));
  CHECK(sa::array_equal(sa::einsum("ij,jk->ik", column, m[{sa::slice(0, 3), sa::all}]),
                        sa::matmul(sa::broadcast_to(column, {3, 3}), m)));
  CHECK(sa::array_equal(sa::einsum("ij,ij,ij->", row, column, m), sa::sum(row * column * m)));
  CHECK(sa::einsum("ii->i", sa::ones({1, 1})).shape() == Shape{1});
  CHECK(sa::einsum("i,i->i", sa::ones({1}), sa::ones({0})).shape() == Shape{0});
  CHECK_THROWS_AS((void)sa::einsum("ii", sa::ones({1, 3})), sa::ShapeError);
}

TEST_CASE("products: messages") {
  const Array x = sa::zeros({2, 3}), v = sa::zeros({3}), none_given = sa::zeros({0});
  using sa::ShapeError;
  CHECK_SAYS(sa::inner(x, sa::zeros({2})),
             "inner: f32[2,3] with f32[2]. The last dimensions must be equal. Transpose an operand.",
             ShapeError);
  CHECK_SAYS(sa::vdot(x, v),
             "vdot: f32[2,3] with f32[3]. Both have as many elements. Use inner for one axis.", ShapeError);
  CHECK_SAYS(
      sa::cross(sa::zeros({4, 3}), v, 0),
      "cross: f32[4,3] with f32[3] along axis 0. A vector there has 2 or 3 elements. Name the axis of the "
      "vectors.",
      ShapeError);
  CHECK_SAYS(sa::matrix_power(x, 2),
             "matrix_power: the operand is f32[2,3]. A power is one of square matrices. Check the last two "
             "dimensions.",
             ShapeError);
  CHECK_SAYS(sa::multi_dot({x}), "multi_dot: 1 array. A chain has two at least. Give more.", ShapeError);
  CHECK_SAYS(
      sa::multi_dot({x, v, v}),
      "multi_dot: operand 1 is f32[3]. They are matrices; the first and the last may be vectors. Use matmul "
      "for batches.",
      ShapeError);
  CHECK_SAYS(
      sa::multi_dot({x, x}),
      "multi_dot: f32[2,3] @ f32[2,3] contracts 3 with 2. Neighbours agree there. Transpose an operand.",
      ShapeError);
  CHECK_SAYS(sa::diff(v, -1), "diff: -1 times. The number is not negative. Use cumsum for sums.", ShapeError);
  CHECK_SAYS(sa::gradient(sa::zeros({1})),
             "gradient: f32[1] along axis -1. A slope needs two samples. Check the size first.", ShapeError);
  CHECK_SAYS(
      sa::trapezoid(x, sa::zeros({2})),
      "trapezoid: places f32[2] of samples f32[2,3] along axis -1. They are a vector along it, or have the "
      "samples' shape. Broadcast them.",
      ShapeError);
  CHECK_SAYS(
      sa::interp(x, v, sa::zeros({2})),
      "interp: places f32[3] and values f32[2]. Both are vectors of one size that is not 0. Use vmap for "
      "several lines.",
      ShapeError);
  CHECK_SAYS(
      sa::polyval(x, v),
      "polyval: the coefficients are f32[2,3]. They are a vector, the highest power first. Use vmap for "
      "several polynomials.",
      ShapeError);
  CHECK_SAYS(
      sa::convolve(v, none_given),
      "convolve: operands f32[3] and f32[0]. Both are vectors with elements. Use vmap for several lines.",
      ShapeError);
  CHECK_SAYS(
      sa::correlate(x, v),
      "correlate: operands f32[2,3] and f32[3]. Both are vectors with elements. Use vmap for several lines.",
      ShapeError);
}

}  // namespace products_test

// Sorts along sharded dimensions: by columns, as a graph on one device and as programs on several; compared with sorts of whole lines.
#include "compile/sort_by_columns.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/at.h"
#include "layout_helpers.h"
#include "ops/record.h"
#include "program_of.h"
#include "scale.h"

namespace sort_by_columns_test {

namespace sa = shardarray;
using sa::Array;
using sa::P;
using sa::Shape;
using Arrays = std::vector<Array>;

namespace {

std::vector<std::byte> bits(const Array& x) {
  const Array y = sa::is_floating(x.dtype()) ? sa::bitcast(x, sa::uint32) : x.astype(sa::int32);
  const auto v = y.to_vector<double>();
  std::vector<std::byte> r(v.size() * sizeof(double));
  if (!v.empty()) std::memcpy(r.data(), v.data(), r.size());
  return r;
}

// The same numbers: zeros of both signs are one, NaN is itself.
bool same(const Array& a, const Array& b) {
  const std::vector<double> v = program_test::values(a), w = program_test::values(b);
  return std::equal(v.begin(), v.end(), w.begin(), w.end(),
                    [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

// Zeros and ones of which every column has its own number: just above or below what is dealt out evenly. A sort that looks at nothing
// but comparisons is right if it is for all such lines.
std::vector<float> zeros_and_ones(std::int64_t columns, std::int64_t rows, std::mt19937& random) {
  std::vector<float> v;
  for (std::int64_t c = 0; c < columns; c++) {
    const auto any = static_cast<std::int64_t>(random() % static_cast<unsigned>(rows + 1));
    const std::int64_t zeros = std::clamp<std::int64_t>(any / columns * columns + random() % 3 - 1, 0, rows);
    for (std::int64_t k = 0; k < rows; k++) v.push_back(k < zeros ? 0.f : 1.f);
  }
  return v;
}
// Few different numbers, zeros of both signs, infinities, NaN.
std::vector<float> edges(std::int64_t n, std::mt19937& random) {
  const float of[] = {0.f,
                      -0.f,
                      1.f,
                      -1.f,
                      std::numeric_limits<float>::infinity(),
                      -std::numeric_limits<float>::infinity(),
                      std::numeric_limits<float>::quiet_NaN(),
                      0.5f,
                      -2.f};
  std::vector<float> v;
  for (std::int64_t k = 0; k < n; k++) v.push_back(of[random() % std::size(of)]);
  return v;
}

// What the graph makes of these operands, its nodes recorded one by one.
Arrays run(const sa::FlatGraph& g, const Arrays& operands) {
  Arrays value(g.types.size());
  for (std::size_t k = 0; k < operands.size(); k++)
    value[static_cast<std::size_t>(g.inputs[k])] = operands[k];
  for (const sa::FlatNode& n : g.nodes) {
    if (n.op->form == sa::Form::leaf) continue;
    Arrays in;
    for (const int v : n.in) in.push_back(sa::at(value, v));
    const Arrays out = sa::record_all(*n.op, in, n.attrs, {});
    for (std::size_t k = 0; k < out.size(); k++) value[static_cast<std::size_t>(n.first_out) + k] = out[k];
  }
  Arrays results;
  for (const int v : g.outputs) results.push_back(sa::at(value, v));
  return results;
}

// The sort of operands of these types along `dim`, as it would be if that were cut into so many parts.
std::optional<sa::FlatGraph> columns_of(const Arrays& like, std::size_t dim, int columns, bool reproducible) {
  const sa::reproducible on(reproducible);
  sa::Graph g;
  for (const Array& x : like) g.in.push_back(sa::placeholder({x.shape(), x.dtype(), false}));
  g.out = sa::primitive::sort(g.in, dim);
  const sa::FlatGraph flat = sa::flatten(g);
  const Shape& shape = like[0].shape();
  std::vector<sa::AxisList> dims(shape.size());
  dims[dim] = {sa::SubAxis{1, columns}};
  const sa::Layout* layout = sa::Layout::of(sa::testing::layouts::order_of(columns), dims);
  sa::Propagation p;
  p.sub_axes = sa::SubAxes::of(layout->order(), {&layout, 1});
  p.preferences.dims.assign(flat.types.size(), sa::to_sub_axes(p.sub_axes, *layout));
  return sa::sort_by_columns(flat, p);
}

}  // namespace

TEST_CASE("sort by columns: the graph sorts what whole lines are sorted to, equal keys in their order") {
  std::mt19937 random(1);
  for (const int columns : {3, 4, 5, 8})
    for (const std::int64_t rows :
         {2 * columns * columns, 2 * columns * columns + columns, 3 * columns * columns}) {
      const std::int64_t n = rows * columns;
      const Shape shapes[] = {{n}, {2, n}, {n, 2}};
      for (const Shape& shape : shapes) {
        const std::size_t dim = shape.size() == 2 && shape[1] == n ? 1 : 0;
        CAPTURE(columns);
        CAPTURE(sa::to_string(shape));
        std::vector<float> numbers =
            shape.size() == 1 ? zeros_and_ones(columns, rows, random) : edges(2 * n, random);
        const Array key = sa::array(numbers, shape), whole = sa::nan_to_num(key).astype(sa::int32),
                    positions = sa::primitive::iota(shape, dim, sa::int32),
                    other = sa::random::bits(sa::random::key(columns), shape).astype(sa::float32);
        const Arrays cases[] = {{whole},          {key},        {whole, positions},
                                {key, positions}, {key, other}, {whole, other, positions},
                                {positions, key}};
        for (const Arrays& operands : cases)
          for (const bool reproducible : {false, true}) {
            CAPTURE(operands.size());
            const auto graph = columns_of(operands, dim, columns, reproducible);
            if (!graph && columns < 5) continue;  // whole lines move less
            REQUIRE(graph.has_value());
            const Arrays got = run(*graph, operands), want = sa::primitive::sort(operands, dim);
            REQUIRE(got.size() == want.size());
            for (std::size_t k = 0; k < want.size(); k++) {
              if (operands.size() == 1 && !reproducible) CHECK(same(got[k], want[k]));
              else CHECK(bits(got[k]) == bits(want[k]));
            }
          }
      }
    }
}

TEST_CASE("sort by columns: lines that are too short or come out uneven are left alone") {
  for (const auto& [n, columns] :
       {std::pair{31 * 4, 4}, {33 * 4, 4}, {32 * 4 + 1, 4}, {28 * 4, 4}, {32 * 4, 1}})
    CHECK_FALSE(columns_of({sa::zeros({n})}, 0, columns, false).has_value());
  CHECK(columns_of({sa::zeros({32 * 4})}, 0, 4, false).has_value());
}

TEST_CASE("sort by columns: programs on cut lines have one device's values and move two parts at most") {
  const sa::Mesh line = sa::make_mesh({{"x", 8}}), grid = sa::make_mesh({{"x", 4}, {"y", 2}});
  struct Case {
    const char* what;
    Shape shape;
    sa::Sharding placed;
    std::int64_t axis, parts;  // devices along the line
  };
  const std::int64_t n = 1 << 16;
  const Case cases[] = {
      {"a vector on 8", {n}, sa::NamedSharding(line, P("x")), 0, 8},
      {"a vector on both axes", {n}, sa::NamedSharding(grid, P(sa::axes("x", "y"))), 0, 8},
      {"a vector on 4 of 8", {n}, sa::NamedSharding(grid, P("x")), 0, 4},
      {"rows that are cut too", {2, n}, sa::NamedSharding(grid, P("y", "x")), 1, 4},
      {"columns", {n, 3}, sa::NamedSharding(line, P("x")), 0, 8},
  };
  std::mt19937 random(2);
  sa::testing::LeftOut left_out(5);
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const Array numbers = sa::array(edges(sa::num_elements(c.shape), random), c.shape),
                whole = sa::random::randint(sa::random::key(3), c.shape, 0, 1000);
    const std::int64_t axis = c.axis;
    const std::pair<const char*, std::function<Array(const Array&)>> functions[] = {
        {"sort", [=](const Array& x) { return sa::sort(x, axis); }},
        {"argsort", [=](const Array& x) { return sa::argsort(x, axis); }},
        {"sort, falling", [=](const Array& x) { return sa::sort(x, {.axis = axis, .descending = true}); }},
        {"argsort, falling",
         [=](const Array& x) { return sa::argsort(x, {.axis = axis, .descending = true}); }},
        {"median", [=](const Array& x) { return sa::median(x, axis); }},
        {"derivative", [=](const Array& x) {
           return sa::grad([=](const Array& y) {
             return sa::sum(sa::sort(y, axis) * sa::cumsum(sa::ones_like(y), axis));
           })(x.astype(sa::float32));
         }}};
    for (const auto& row : functions) {
      const auto& name = row.first;
      const auto& f = row.second;
      for (const Array& x : {whole, numbers}) {
        if (left_out()) continue;
        CAPTURE(name);
        CAPTURE(x.dtype());
        const auto g = sa::jit(f);
        const Array placed = sa::device_put(x, c.placed), want = g(x), got = g(placed);
        CHECK(same(got, want));
        program_test::check_received(g, placed);
      }
    }
    const auto sorted = sa::jit([=](const Array& x) { return sa::sort(x, axis); });
    const Array placed = sa::device_put(whole, c.placed);
    const std::int64_t part = sa::num_elements(c.placed.shard_shape(c.shape)) * 4;
    CAPTURE(program_test::transfers(sa::explain(sorted, placed)));
    CHECK(program_test::bytes_received(sa::explain(sorted, placed)) <= 2 * part);
    if (c.parts < 8) continue;  // what is turned round, or has positions, moves more
    const auto falling =
        sa::jit([=](const Array& x) { return sa::sort(x, {.axis = axis, .descending = true}); });
    CAPTURE(program_test::transfers(sa::explain(falling, placed)));
    CHECK(program_test::bytes_received(sa::explain(falling, placed)) <= 4 * part);
    const auto positions = sa::jit([=](const Array& x) { return sa::argsort(x, axis); });
    CHECK(program_test::bytes_received(sa::explain(positions, placed)) <= 4 * part);
    const sa::reproducible on(true);
    const auto same = sa::jit([=](const Array& x) { return sa::sort(x, axis); });
    CHECK(bits(same(sa::device_put(numbers, c.placed))) == bits(same(numbers)));
  }
}

TEST_CASE("sort by columns: in bodies and branches, of several at once, of what is given away") {
  const std::int64_t n = 1 << 15;
  const sa::Sharding on8 = sa::NamedSharding(sa::make_mesh({{"x", 8}}), P("x"));
  const Array x = sa::random::randint(sa::random::key(5), {n}, 0, 1000), cut = sa::device_put(x, on8);
  const std::pair<const char*, std::function<Array(const Array&)>> functions[] = {
      {"iterated",
       [=](const Array& v) {
         return sa::fori_loop(
             0, 3, [=](const Array& k, const Array& c) { return sa::roll(sa::sort(c * 7 % 1001 + k), 5); },
             v);
       }},
      {"branches",
       [=](const Array& v) {
         return sa::cond(
             v[0] > 500, [](const Array& a) { return sa::sort(a); },
             [](const Array& a) { return sa::sort(a, {.descending = true}); }, v);
       }},
      {"repeated",
       [=](const Array& v) {
         return sa::while_loop([](const Array& c) { return c[0] < 900; },
                               [](const Array& c) { return sa::flip(sa::sort(c), 0); }, sa::sort(v));
       }},
      {"two, and an order of both",
       [=](const Array& v) {
         return sa::sort(v) + sa::sort(-v) * 3 + sa::lexsort({v % 10, v % 7});
       }},
      {"read in every run",
       [=](const Array& v) {
         const Array y = sa::sort(v);
         return sa::fori_loop(
             0, 50, [=](const Array& k, const Array& c) { return c + sa::cumsum(y * (c + k)); },
             sa::zeros_like(v));
       }},
      {"of short numbers",
       [=](const Array& v) {
         return sa::argsort(v.astype(sa::int8)) + sa::sort(v.astype(sa::float32)).astype(sa::int32);
       }},
  };
  for (const auto& row : functions) {
    const auto& name = row.first;
    const auto& f = row.second;
    CAPTURE(name);
    const auto g = sa::jit(f);
    CHECK(same(g(cut), g(x)));
    const bool moves_all = std::string(name) != "branches" && std::string(name) != "repeated";
    if (moves_all) program_test::check_received(g, cut);
  }
  // A strict line in a body refuses what the sort's new place would move there: the line is sorted as before.
  const auto strict_body = sa::jit([=](const Array& v) {
    const Array y = sa::sort(v);
    return sa::fori_loop(
        0, 3,
        [=](const Array& k, const Array& c) {
          const sa::policy::strict here;
          return c + sa::sum(y * k);
        },
        sa::array(0));
  });
  CHECK(same(strict_body(cut), strict_body(x)));
  const auto given = sa::jit([](Array v) { return sa::sort(v); });
  Array mine = sa::device_put(x, on8);
  CHECK(same(given(std::move(mine)), sa::sort(x)));
}

}  // namespace sort_by_columns_test

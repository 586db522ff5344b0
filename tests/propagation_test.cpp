// The golden tables of the compiler: where results lie, which transfers a program makes and their bytes, and that the values
// are those of one device. Rows and numbers come from Shardy's and XLA's partitioner tests; B is what the busiest device
// receives. Meshes are x=4, y=2 (the first half x0=2, x1=2 where a row cuts x in two), or a=2, b=2.
#include <functional>

#include "golden.h"
#include "ops/record.h"
#include "program_of.h"

namespace propagation_test {

namespace sa = shardarray;
using namespace program_test;
using sa::axes;

namespace {

using Fn = std::function<Array(const std::vector<Array>&)>;

sa::Sharding on_ab(const P& spec) { return sa::NamedSharding(sa::make_mesh({{"a", 2}, {"b", 2}}), spec); }
sa::Sharding on_x0x1y(const P& spec) {
  return sa::NamedSharding(sa::make_mesh({{"x0", 2}, {"x1", 2}, {"y", 2}}), spec);
}

struct Operand {
  Shape shape;
  sa::Sharding sharding;
  sa::DType dtype = sa::float32;
};
struct Row {
  int number;
  std::vector<Operand> operands;
  Fn f;
  std::optional<sa::Sharding> closed;  ///< requested of the result
  sa::Sharding final;
  std::string transfers;
  std::int64_t most;  ///< the table's B
};

void check(const Row& row) {
  CAPTURE(row.number);
  std::vector<Array> plain, placed;
  for (const Operand& o : row.operands) {
    plain.push_back(numbers(o.shape, o.dtype, static_cast<int>(plain.size())));
    placed.push_back(sa::device_put(plain.back(), o.sharding));
  }
  const auto f = sa::jit([&row](const std::vector<Array>& v) {
    return row.closed ? sa::filter_shard(row.f(v), *row.closed) : row.f(v);
  });
  const sa::Explanation e = sa::explain(f, placed);
  CAPTURE(e.to_string());
  CHECK(transfers(e) == row.transfers);
  CHECK(bytes_received(e) <= row.most);
  const Array got = f(placed);
  const std::string lies = got.sharding().to_string();
  CAPTURE(lies);
  CHECK(got.sharding().is_equivalent_to(row.final, got.ndim()));
  CHECK(golden::close(values(got), values(sa::jit(row.f)(plain)), 1e-6));
  check_received(f, placed);
  if (row.closed)
    CHECK(transfers(sa::explain(sa::jit(row.f, {.out_shardings = row.closed}), placed)) == row.transfers);
}

const Array& first(const std::vector<Array>& v) { return v[0]; }
Array product(const std::vector<Array>& v) { return sa::matmul(v[0], v[1]); }
Array sum_of_two(const std::vector<Array>& v) { return v[0] + v[1]; }
Fn reshape_to(const Shape& s) {
  return [s](const std::vector<Array>& v) { return sa::reshape(v[0], s); };
}
Fn sum_over(const Shape& dims) {
  return [dims](const std::vector<Array>& v) { return sa::sum(v[0], {.axis = dims}); };
}
Fn sort_along(int dim) {
  return [dim](const std::vector<Array>& v) { return sa::sort(v[0], dim); };
}
Array mlp(const std::vector<Array>& v) { return sa::matmul(sa::relu(sa::matmul(v[0], v[1])), v[2]); }

constexpr auto open = std::nullopt;

}  // namespace

TEST_CASE("propagation: elementwise") {
  const auto on = on_xy;
  const std::vector<Row> rows = {
      {1, {{{4, 32}, on(P("x"))}}, [](const auto& v) { return -v[0]; }, open, on(P("x")), "", 0},
      {2, {{{4, 32}, on(P())}}, [](const auto& v) { return -v[0]; }, on(P("x")), on(P("x")), "", 0},
      {4, {{{4, 32}, on(P("x"))}, {{4, 32}, on(P())}}, sum_of_two, open, on(P("x")), "", 0},
      {5,
       {{{4, 32}, on(P("x"))}, {{4, 32}, on(P("x"))}},
       sum_of_two,
       on(P(sa::none, "y")),
       on(P(sa::none, "y")),
       "all_gather{x} 192",
       192},
      {7, {{{8, 8}, on(P("x"))}, {{8, 8}, on(P(sa::none, "y"))}}, sum_of_two, open, on(P("x", "y")), "", 0},
      {8,
       {{{}, on(P())}, {{16, 8}, on(P(axes("x", "y")))}, {{16, 8}, on(P())}},
       [](const auto& v) { return sa::where(v[0] > 0, v[1], v[2]); },
       open,
       on(P(axes("x", "y"))),
       "",
       0},
      {58, {{{7, 5}, on(P("x"))}, {{7, 5}, on(P("x"))}}, sum_of_two, open, on(P("x")), "", 0},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("propagation: transpose and reshape") {
  const auto on = on_xy;
  const std::vector<Row> rows = {
      {10,
       {{{8, 32}, on(P("x", "y"))}},
       [](const auto& v) { return v[0].T(); },
       open,
       on(P("y", "x")),
       "",
       0},
      {11, {{{4, 8}, on(P("x"))}}, reshape_to({32}), open, on(P("x")), "", 0},
      {13,
       {{{4, 4}, on_ab(P("a", "b"))}},
       reshape_to({16}),
       on_ab(P("a")),
       on_ab(P("a")),
       "all_gather{b} 16",
       16},
      {13,
       {{{4, 4}, on_ab(P("a", "b"))}},
       reshape_to({16}),
       open,
       on_ab(P(axes("a", "b"))),
       "all_to_all{b} 8",
       8},
      {14, {{{8}, on(P("x"))}}, reshape_to({2, 4}), open, on_x0x1y(P("x0", "x1")), "", 0},
      {16, {{{3, 4}, on(P(sa::none, "y"))}}, reshape_to({4, 3}), open, on(P()), "all_gather{y} 24", 24},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("propagation: products") {
  const auto on = on_xy;
  const auto n = sa::none;
  const std::vector<Row> rows = {
      {17, {{{8, 32}, on(P("x"))}, {{32, 16}, on(P(n, "y"))}}, product, open, on(P("x", "y")), "", 0},
      {19,
       {{{8, 32}, on(P("x", "y"))}, {{32, 16}, on(P("y"))}},
       product,
       on(P("x")),
       on(P("x")),
       "all_reduce{y} 128",
       128},
      {20,
       {{{8, 32}, on(P("x", "y"))}, {{32, 16}, on(P("y"))}},
       product,
       on(P("x", "y")),
       on(P("x", "y")),
       "reduce_scatter{y} 64",
       64},
      {22,
       {{{8, 32}, on(P("x", "y"))}, {{32, 16}, on(P("y"))}},
       product,
       on(P(axes("y", "x"))),
       on(P(axes("y", "x"))),
       "reduce_scatter{y} 64, permute{x,y} 64",
       128},
      {23,
       {{{8, 32}, on(P("x", "y"))}, {{32, 16}, on(P(n, "y"))}},
       product,
       on(P("x", "y")),
       on(P("x", "y")),
       "all_gather{y} 128",
       128},
      {25,
       {{{8, 32}, on(P("x", "y"))}, {{32, 16}, on(P("y", "x"))}},
       product,
       on(P(n, "x")),
       on(P(n, "x")),
       "all_gather{x} 384, all_reduce{y} 128",
       512},
      {26, {{{8, 4, 6}, on(P("x"))}, {{8, 6, 5}, on(P("x"))}}, product, open, on(P("x")), "", 0},
      {28,
       {{{4096, 512}, on(P("x"))}, {{512, 512}, on(P("x"))}},
       product,
       on(P("x")),
       on(P("x")),
       "all_gather{x} 786432",
       786432},
      {31,
       {{{8, 16}, on(P())}, {{16, 32}, on(P(n, "x"))}, {{32, 16}, on(P("x"))}},
       mlp,
       on(P()),
       on(P()),
       "all_reduce{x} 384, all_gather{y} 256",
       768},
      {59,
       {{{4, 7}, on(P(n, "y"))}, {{7, 5}, on(P("y"))}},
       product,
       on(P()),
       on(P()),
       "all_reduce{y} 80",
       80},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("propagation: a tiny batch moves, not the weight") {
  const auto on = on_xy;
  check({29,
         {{{4, 4096}, on(P("x"))}, {{4096, 4096}, on(P("x"))}},
         product,
         on(P("x")),
         on(P("x")),
         "all_to_all{x} 12288, reduce_scatter{x} 24576, all_gather{y} 8192",
         45056});
}

TEST_CASE("propagation: sums") {
  const auto on = on_xy;
  const auto n = sa::none;
  const std::vector<Row> rows = {
      {32, {{{4, 64, 13}, on(P("x"))}}, sum_over({1}), open, on(P("x")), "", 0},
      {34, {{{2, 64, 13}, on(P("y", "x"))}}, sum_over({0, 1}), on(P()), on(P()), "all_reduce{x,y} 91", 91},
      {35,
       {{{4, 64, 16}, on(P(n, "x"))}},
       sum_over({1}),
       on(P(n, "x")),
       on(P(n, "x")),
       "reduce_scatter{x} 192",
       192},
      {37,
       {{{2, 64, 13}, on(P(n, "x"))}},
       [](const auto& v) {
         const Array r = sa::sum(v[0], 1);
         return r + r;
       },
       on(P()),
       on(P()),
       "all_reduce{x} 156",
       156},
      {38,
       {{{2, 64, 13}, on(P(n, "x"))}},
       [](const auto& v) { return sa::exp(sa::sum(v[0], 1) * 0.01); },
       on(P()),
       on(P()),
       "all_reduce{x} 156",
       156},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("propagation: concatenate, pad, sort, windows") {
  const auto on = on_xy;
  const auto n = sa::none;
  const Fn join = [](const auto& v) { return sa::concatenate(v, 1); };
  const std::vector<Row> rows = {
      {40, {{{8, 32}, on(P("x"))}, {{8, 48}, on(P("x"))}}, join, open, on(P("x")), "", 0},
      {41,
       {{{8, 32, 256}, on(P("x", "y"))}, {{8, 48, 256}, on(P(n, "y"))}},
       join,
       on(P("x", "y")),
       on(P("x", "y")),
       "exchange{x,y} 32768",
       32768},
      {43,
       {{{8, 8}, on_ab(P("a", "b"))}},
       [](const auto& v) {
         return sa::pad(v[0], {{4, 4}, {0, 0}});
       },
       open,
       on_ab(P("a", "b")),
       "",
       0},
      {44,
       {{{8, 8}, on(P("x"))}},
       [](const auto& v) {
         return sa::pad(v[0], {{1, 1}, {0, 0}});
       },
       open,
       on(P("x")),
       "exchange{x} 64",
       64},
      {56,
       {{{2, 16, 16, 4}, on(P(n, "x"))}, {{3, 3, 4, 8}, on(P())}},
       [](const auto& v) {
         const sa::ConvDimensionNumbers last{.lhs = "NHWC", .rhs = "HWIO", .out = "NHWC"};
         return sa::conv_general_dilated(v[0], v[1], {.padding = "SAME", .dimension_numbers = last});
       },
       open,
       on(P(n, "x")),
       "exchange{x} 1024",
       1024},
      {46,
       {{{4, 32, 8}, on(P("x", "y"))}},
       sort_along(0),
       open,
       on(P(n, axes("y", "x"))),
       "all_to_all{x} 384",
       384},
      {47, {{{64}, on(P("x"))}}, sort_along(0), open, on(P()), "all_gather{x} 192", 192},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("propagation: rows taken and scattered") {
  const auto on = on_xy;
  const auto n = sa::none;
  const Fn take = [](const auto& v) { return sa::take(v[0], sa::abs(v[1]), 0); };
  // rows of v[2] added into v[0]; into zeros
  const Fn add_rows = [](const auto& v) {
    return v[0] + sa::primitive::scatter(sa::abs(v[1]), v[2], 0, 1, 16);
  };
  const Fn scatter = [](const auto& v) { return sa::primitive::scatter(sa::abs(v[0]), v[1], 0, 1, 16); };
  const std::vector<Row> rows = {
      {49,
       {{{16, 8}, on(P("x"))}, {{6}, on(P()), sa::int32}},
       take,
       on(P()),
       on(P()),
       "all_reduce{x} 288",
       288},
      {50, {{{16, 8}, on(P(n, "x"))}, {{6}, on(P()), sa::int32}}, take, open, on(P(n, "x")), "", 0},
      {52,
       {{{16, 8}, on(P("x"))}, {{6}, on(P()), sa::int32}, {{6, 8}, on(P())}},
       add_rows,
       open,
       on(P("x")),
       "",
       0},
      {53,
       {{{6}, on(P("y")), sa::int32}, {{6, 8}, on(P("y"))}},
       scatter,
       on(P()),
       on(P()),
       "all_gather{y} 12, all_gather{y} 96",
       108},
      {55,
       {{{32, 4, 8}, on(P(n, "x", "y"))}, {{32, 1, 2}, on(P(n, n, "y"))}},
       [](const auto& v) {
         return sa::dynamic_update_slice(v[0], v[1], {0, 2, 3});
       },
       on(P(n, "x", "y")),
       on(P(n, "x", "y")),
       "all_gather{y} 128",
       128},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("propagation: reshards") {
  const auto on = on_xy;
  const auto n = sa::none;
  const std::vector<Row> rows = {
      {61,
       {{{16, 8, 8}, on(P("x", "y"))}},
       first,
       on(P(n, "y", "x")),
       on(P(n, "y", "x")),
       "all_to_all{x} 384",
       384},
      {62,
       {{{16, 8, 8}, on(P(n, axes("y", "x")))}},
       first,
       on(P("x", n, "y")),
       on(P("x", n, "y")),
       "exchange{x,y} 448",
       448},
      {64,
       {{{16, 8}, on(P(axes("x", "y")))}},
       first,
       on(P(axes("y", "x"))),
       on(P(axes("y", "x"))),
       "permute{x,y} 64",
       64},
      {65, {{{16, 8}, on(P(axes("x", "y")))}}, first, on(P("x")), on(P("x")), "all_gather{y} 64", 64},
  };
  for (const Row& row : rows) check(row);
}

}  // namespace propagation_test

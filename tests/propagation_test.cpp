// The golden tables of the compiler: where results lie, which transfers a program makes and their bytes, and that the values
// are those of one device. Rows and numbers come from Shardy's and XLA's partitioner tests; B is what the busiest device
// receives. Meshes are x=4, y=2 (the first half x0=2, x1=2 where a row cuts x in two), or a=2, b=2.
#include <functional>

#include "golden.h"
#include "ops/prims.h"
#include "program_of.h"

namespace sa = shardarray;
using program_test::check_received;
using sa::Array;
using sa::axes;
using sa::P;
using sa::Shape;

namespace {

using Fn = std::function<Array(const std::vector<Array>&)>;

sa::Sharding on_xy(const P& spec) { return sa::NamedSharding(sa::make_mesh({{"x", 4}, {"y", 2}}), spec); }
sa::Sharding on_ab(const P& spec) { return sa::NamedSharding(sa::make_mesh({{"a", 2}, {"b", 2}}), spec); }
sa::Sharding on_x0x1y(const P& spec) {
  return sa::NamedSharding(sa::make_mesh({{"x0", 2}, {"x1", 2}, {"y", 2}}), spec);
}

/// Small whole numbers: sums and products are exact in any order.
Array numbers(const Shape& shape, sa::DType dtype = sa::float32, int seed = 0) {
  std::vector<float> v(static_cast<std::size_t>(sa::num_elements(shape)));
  for (std::size_t k = 0; k < v.size(); k++)
    v[k] = static_cast<float>((k * 7 + k / 5 + static_cast<std::size_t>(seed) * 3) % 11) - 5;
  return sa::array(v, shape, dtype);
}

/// "all_gather{x} 384, all_reduce{y} 128", in order.
std::string transfers(const sa::Explanation& e) {
  std::string s;
  for (const sa::TransferInfo& t : e.transfers())
    s += (s.empty() ? "" : ", ") + t.kind + t.axes + " " + std::to_string(t.bytes_per_device);
  return s;
}
std::int64_t bytes(const sa::Explanation& e) {
  std::int64_t b = 0;
  for (const sa::TransferInfo& t : e.transfers()) b += t.bytes_per_device;
  return b;
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

std::vector<double> values(const Array& x) { return x.to_vector<double>(); }

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
  CHECK(bytes(e) <= row.most);
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

TEST_CASE("propagation: concatenate, pad, sort") {
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
  const Fn add_rows = [](const auto& v) { return v[0] + sa::prim::scatter(sa::abs(v[1]), v[2], 0, 1, 16); };
  const Fn scatter = [](const auto& v) { return sa::prim::scatter(sa::abs(v[0]), v[1], 0, 1, 16); };
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

// ---------------------------------------------------------------- whole programs
namespace {

Array placed(const Shape& shape, const sa::Sharding& s, int seed = 0) {
  return sa::device_put(numbers(shape, sa::float32, seed), s);
}
template <class F, class... A> std::string planned(const F& f, const A&... args) {
  const auto j = sa::jit(f);
  check_received(j, args...);
  return transfers(sa::explain(j, args...));
}
Array square_loss(const std::vector<Array>& w, const Array& x, const Array& target) {
  return sa::mean(sa::square(sa::matmul(sa::tanh(sa::matmul(x, w[0]) * 0.01), w[1]) - target));
}

}  // namespace

TEST_CASE("programs: an elementwise chain stays put") {
  const Array x = placed({16, 8}, on_xy(P(axes("x", "y"))));
  const auto f = [](const Array& v) { return sa::sin(sa::cos(v) + 1) * v; };
  CHECK(planned(f, x).empty());
  CHECK(sa::jit(f)(x).sharding().is_equivalent_to(x.sharding(), 2));
}

TEST_CASE("programs: data parallel training reduces each gradient once") {
  const sa::Sharding rows = on_xy(P(axes("x", "y"))), whole = on_xy(P());
  const std::vector<Array> w = {placed({16, 32}, whole), placed({32, 4}, whole, 1)};
  const Array x = placed({64, 16}, rows, 2), target = placed({64, 4}, rows, 3);
  const auto forward = [&](const std::vector<Array>& v, const Array& in) {
    return sa::matmul(sa::tanh(sa::matmul(in, v[0])), v[1]);
  };
  CHECK(planned(forward, w, x).empty());
  const auto grads = [&](const std::vector<Array>& v, const Array& in, const Array& out) {
    return sa::filter_shard(sa::grad(square_loss)(v, in, out), whole);
  };
  CHECK(planned(grads, w, x, target) ==
        "all_reduce{x,y} 3584, all_reduce{x,y} 896");  // 2 * 7/8 of each gradient
  const auto loss = [](const std::vector<Array>& v, const Array& in, const Array& out) {
    return square_loss(v, in, out);
  };
  CHECK(planned(loss, w, x, target) == "all_reduce{x,y} 7");  // one number
  const std::vector<Array> plain = {numbers({16, 32}), numbers({32, 4}, sa::float32, 1)};
  const auto got = sa::jit(grads)(w, x, target);
  const auto want =
      sa::grad(square_loss)(plain, numbers({64, 16}, sa::float32, 2), numbers({64, 4}, sa::float32, 3));
  for (std::size_t k = 0; k < 2; k++) CHECK(golden::close(values(got[k]), values(want[k]), 1e-4, 1e-5));
}

TEST_CASE("programs: FSDP gathers the weights, not the batch") {
  const sa::Sharding rows = on_xy(P(axes("x", "y")));
  const std::vector<Array> w = {placed({64, 64}, rows), placed({64, 64}, rows, 1)};
  const Array x = placed({1024, 64}, rows, 2);
  const auto forward = [](const std::vector<Array>& v, const Array& in) {
    return sa::matmul(sa::relu(sa::matmul(in, v[0])), v[1]);
  };
  CHECK(planned(forward, w, x) == "all_gather{x,y} 14336, all_gather{x,y} 14336");
  CHECK(sa::jit(forward)(w, x).sharding().is_equivalent_to(rows, 2));
}

TEST_CASE("programs: softmax over a sharded dimension") {
  const Array x = placed({16, 64}, on_xy(P(sa::none, "x")));
  const auto f = [](const Array& v) { return sa::softmax(v); };
  CHECK(planned(f, x) == "all_reduce{x} 96, all_reduce{x} 96");  // 2 * 3/4 of 16 numbers: max, sum
  const Array y = sa::jit(f)(x);
  CHECK(y.sharding().is_equivalent_to(x.sharding(), 2));
  CHECK(golden::close(values(y), values(sa::softmax(numbers({16, 64}))), 1e-5));
}

TEST_CASE("programs: attention, heads sharded") {
  const auto on = on_xy;
  const sa::Sharding heads = on(P("y", "x"));
  const Shape shape{2, 4, 8, 4};  // batch, heads, positions, head size
  const Array q = placed(shape, heads), k = placed(shape, heads, 1), v = placed(shape, heads, 2),
              wo = placed({16, 16}, on(P("x")), 3);
  const auto f = [&](const Array& a, const Array& b, const Array& c, const Array& w) {
    const Array p = sa::softmax(sa::einsum("bhsd,bhtd->bhst", a, b) * 0.1);
    const Array o = sa::reshape(sa::transpose(sa::einsum("bhst,bhtd->bhsd", p, c), {0, 2, 1, 3}), {2, 8, 16});
    return sa::filter_shard(sa::matmul(o, w), on(P("y")));
  };
  CHECK(planned(f, q, k, v, wo) == "all_reduce{x} 768");  // 2 * 3/4 of 1 x 8 x 16 numbers
}

TEST_CASE("programs: a reshard that two need is made once; one that nobody needs, not at all") {
  const auto on = on_xy;
  const Array x = placed({16, 8}, on(P("x")));
  const auto twice = [&](const Array& v) {
    const Array a = sa::filter_shard(v, on(P(sa::none, "x"))), b = sa::filter_shard(v, on(P(sa::none, "x")));
    return sa::sin(a) + sa::cos(b);
  };
  CHECK(planned(twice, x) == "all_to_all{x} 96");
  const auto there_and_back = [&](const Array& v) {
    return sa::filter_shard(sa::filter_shard(v, on(P(sa::none, "x"))), on(P("x")));
  };
  CHECK(planned(there_and_back, x).empty());
  const auto seen_between = [&](const Array& v) {
    const Array a = sa::filter_shard(v, on(P(sa::none, "x")));
    return std::pair(a, sa::filter_shard(a, on(P("x"))));
  };
  CHECK(planned(seen_between, x) == "all_to_all{x} 96");  // the way back is the argument itself
}

TEST_CASE("programs: a donated argument's pieces become the result's") {
  Array x = placed({16, 8}, on_xy(P("x")));
  const auto f = sa::jit([](const Array& v) { return v + 1; });
  const sa::Explanation e = sa::explain(f, std::move(x));
  CHECK(e.transfers().empty());
  REQUIRE(e.donations().size() == 1);
  CHECK(e.donations()[0].reused);
  std::vector<const void*> before, after;
  for (const auto& b : sa::value_of(x)->buffers) before.push_back(b->data);
  const Array y = f(std::move(x));
  for (const auto& b : sa::value_of(y)->buffers) after.push_back(b->data);
  CHECK(before == after);
}

// ---------------------------------------------------------------- policies
TEST_CASE("policies: strict refuses what was not asked for and names the fix") {
  const auto on = on_xy;
  const Array a = placed({8, 32}, on(P("x", "y"))), b = placed({32, 16}, on(P(sa::none, "y")), 1);
  const auto f = [&](const Array& v, const Array& w) {
    return sa::filter_shard(sa::matmul(v, w), on(P("x", "y")));
  };
  sa::set_policy(sa::Policy::strict);
  std::string said;
  try {
    sa::explain(f, a, b);
  } catch (const sa::ShardingError& e) { said = e.what(); }
  const auto asked = [&](const Array& v, const Array& w) { return f(sa::filter_shard(v, on(P("x"))), w); };
  const std::string with_fix = transfers(sa::explain(asked, a, b));
  sa::set_policy(sa::Policy::follow);
  const std::string followed = transfers(sa::explain(f, a, b));
  sa::set_policy(sa::Policy::auto_);
  const auto line = said.find("): ");
  REQUIRE(line != std::string::npos);
  CHECK(said.substr(line) ==
        "): policy strict refuses an implicit all_gather over {y} of 128 bytes per device for an operand "
        "f32[8,32]. Every transfer must "
        "be asked for. Cheapest fix: reshard it to [{x}, {}] before.");
  CHECK(with_fix == "all_gather{y} 128");
  CHECK(followed == "all_gather{y} 128");
}

// ---------------------------------------------------------------- edges
TEST_CASE("edges: dimensions of size zero, and fewer rows than devices") {
  const sa::Sharding eight = on_xy(P(axes("x", "y")));
  const Array none = placed({0, 4}, eight);
  const auto f = [](const Array& v) { return sa::sum(v * 2, 0); };
  CHECK(values(sa::jit(f)(none)) == std::vector<double>(4, 0.0));
  CHECK(planned([](const Array& v) { return v * 2; }, none).empty());
  const Array three = placed({3}, eight);
  CHECK(planned([](const Array& v) { return v * 2; }, three).empty());
  CHECK(values(sa::jit([](const Array& v) { return v * 2; })(three)) == values(numbers({3}) * 2));
  CHECK(sa::jit([](const Array& v) { return sa::sum(v); })(three).item<float>() ==
        sa::sum(numbers({3})).item<float>());
}

TEST_CASE("edges: no padding shows in a reduction over uneven and empty pieces") {
  const sa::Sharding eight = on_xy(P(axes("x", "y")));
  const double inf = std::numeric_limits<double>::infinity();
  const Array x = sa::array(std::vector<float>{-3, -0.0f, -7, -2, -5, -1, -4, -6, -8, -9});
  const Array negative = sa::device_put(x, eight), positive = sa::device_put(-x + 1, eight);
  CHECK(sa::max(negative).item<float>() == 0);
  CHECK(std::signbit(sa::max(negative).item<float>()));
  CHECK(sa::min(positive).item<float>() == 1);
  CHECK(sa::prod(positive).item<float>() == 3628800);  // 10!
  const Array infinite = sa::device_put(sa::full({10}, inf), eight);
  CHECK(sa::matmul(infinite, sa::device_put(sa::ones({10}), eight)).item<float>() == inf);  // no 0 * inf
}

TEST_CASE("edges: integer sums wrap as on one device") {
  std::vector<std::int32_t> v(40, 2000000000);
  const Array x = sa::array(v, {40});
  const std::int64_t want = static_cast<std::int32_t>(static_cast<std::uint32_t>(40ull * 2000000000ull));
  CHECK(sa::sum(sa::device_put(x, on_xy(P(axes("x", "y"))))).item<std::int32_t>() == want);
  CHECK(sa::sum(x).item<std::int32_t>() == want);
}

TEST_CASE("edges: partial sums with whole values, and with each other") {
  const auto on = on_xy;
  const Array a = placed({8, 32}, on(P(sa::none, "x"))), whole = placed({8}, on(P()), 1);
  const auto shifted = [&](const Array& v, const Array& w) {
    return sa::filter_shard(sa::sum(v, 1) + w, on(P()));
  };
  CHECK(planned(shifted, a, whole) == "all_reduce{x} 48");
  CHECK(values(sa::jit(shifted)(a, whole)) ==
        values(sa::sum(numbers({8, 32}), 1) + numbers({8}, sa::float32, 1)));
  const auto squared = [&](const Array& v) {
    const Array s = sa::sum(v, 1);
    return sa::filter_shard(s * s, on(P()));
  };
  CHECK(planned(squared, a) == "all_reduce{x} 48");
  CHECK(values(sa::jit(squared)(a)) == values(sa::square(sa::sum(numbers({8, 32}), 1))));
}

TEST_CASE("edges: another device order is an exchange of the smaller operand") {
  std::vector<sa::Device> reversed = sa::devices();
  std::reverse(reversed.begin(), reversed.end());
  const sa::Mesh other({{8}, reversed}, {"z"});
  const Array large = placed({16, 64}, on_xy(P(axes("x", "y")))),
              small = placed({16, 1}, sa::NamedSharding(other, P("z")), 1);
  const auto f = [](const Array& a, const Array& b) { return a * b; };
  const sa::Explanation e = sa::explain(f, large, small);
  CAPTURE(e.to_string());
  REQUIRE(e.transfers().size() == 1);
  CHECK(e.transfers()[0].kind == "permute");
  CHECK(e.transfers()[0].bytes_per_device == 8);
  CHECK(e.transfers()[0].shape == Shape{16, 1});
  const Array y = sa::jit(f)(large, small);
  CHECK(y.sharding().is_equivalent_to(large.sharding(), 2));
  CHECK(values(y) == values(numbers({16, 64}) * numbers({16, 1}, sa::float32, 1)));
}

TEST_CASE("edges: errors name the place and the remedy") {
  const auto message = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const sa::Error& e) { return e.what(); }
    return "no error";
  };
  const auto d = sa::devices();
  CHECK(message([&] {
          sa::PositionalSharding(std::vector{d[0], d[1], d[0]});
        }) ==
        "PositionalSharding: device cpu:0 stands at positions 0 and 2 of the grid. Every device holds one "
        "block. Remove one.");
  const Array left = sa::device_put(
                  numbers({8}), sa::NamedSharding(sa::Mesh({{4}, {d[0], d[1], d[2], d[3]}}, {"i"}), P("i"))),
              right = sa::device_put(
                  numbers({8}), sa::NamedSharding(sa::Mesh({{4}, {d[4], d[5], d[6], d[7]}}, {"i"}), P("i")));
  CHECK(message([&] { sa::jit([](const Array& a, const Array& b) { return a + b; })(left, right); }) ==
        "jit: Received incompatible devices for jitted computation. Got argument 0 with shape f32[8] with "
        "device ids [0, 1, 2, 3] on "
        "platform cpu and argument 1 with shape f32[8] with device ids [4, 5, 6, 7] on platform cpu. All "
        "committed arrays, constraints "
        "and outputs of one computation must be on the same devices. Move one with device_put(x, sharding).");
  bool reached = false;
  CHECK(message([&] {
          sa::jit([&](const Array& a) {
            const Array r = sa::filter_shard(a, on_xy(P(sa::none, "x")));
            reached = true;
            return r;
          })(numbers({8}));
        }) ==
        "filter_shard: One of its arguments is incompatible with its sharding annotation "
        "NamedSharding(mesh=Mesh('x': 4, 'y': 2), "
        "spec=PartitionSpec(None, 'x')): f32[8]: NamedSharding: NamedSharding(mesh=Mesh('x': 4, 'y': 2), "
        "spec=PartitionSpec(None, 'x')) "
        "is only valid for values of rank at least 2, but was applied to a value of rank 1. The sharding "
        "must fit the value's "
        "dimensions. Drop entries from the PartitionSpec.");
  CHECK_FALSE(reached);
  CHECK(message([&] { on_xy(P("x", "x")); }) ==
        "NamedSharding: PartitionSpec('x', 'x') has duplicate entries for 'x'. A mesh axis cuts at most one "
        "dimension. Remove one of "
        "them.");
}

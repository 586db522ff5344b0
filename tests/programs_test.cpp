// Golden transfers of whole programs, the policies, and edge cases: empty and uneven shards, partial sums, other device
// orders, errors. Mesh x=4, y=2.
#include <algorithm>
#include <limits>
#include <random>

#include "compile/scratch_space.h"
#include "golden.h"
#include "program_of.h"
#include "scale.h"

namespace programs_test {

namespace sa = shardarray;
using namespace program_test;
using sa::axes;

namespace {

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

TEST_CASE("programs: graphs are walked, however long: evaluated, compiled, differentiated, dropped") {
  const int n = sa::testing::full_scale() ? 100'000 : 20'000;
  const auto chain = [n](Array x, const Array& y) {
    for (int k = 0; k < n; k++) x = x + y;
    return x;
  };
  const Array x = placed({8}, on_xy(P(axes("x", "y")))), y = sa::ones({8});
  std::vector<double> want = values(x);
  for (double& w : want) w += n;
  CHECK(values(chain(x, y)) == want);
  CHECK(values(sa::jit(chain)(x, y)) == want);
  const auto total = [&](const Array& v) { return sa::sum(chain(x, v)); };
  CHECK(values(sa::jit(sa::grad(total))(y)) == std::vector<double>(8, n));
  chain(x, y);
  // Elements that only lie elsewhere: one loop, however many steps.
  const auto turned = [n](Array v) {
    for (int k = 0; k < n; k++) v = sa::flip(v, 0);
    return v;
  };
  CHECK(values(sa::jit(turned)(y + x)) == values(y + x));
}

TEST_CASE("programs: scratch blocks lie in the lowest gap among those that live at the same time") {
  struct Block {
    std::uint64_t lo, hi;
    int last;
  };
  for (std::uint64_t seed = 0; seed < 200; seed++) {
    std::mt19937_64 rng(seed);
    sa::ScratchSpace space;
    std::vector<Block> blocks;  // that are alive
    for (int first = 0; first < 60; first++)
      for (auto count = rng() % 4; count > 0; count--) {
        std::erase_if(blocks, [&](const Block& b) { return b.last < first; });
        const std::uint64_t bytes = rng() % 6;  // none at all as well
        const int last = first + static_cast<int>(rng() % 12);
        const std::uint64_t at = space.place(bytes, first, last);
        if (bytes == 0) continue;
        const auto is_free = [&](std::uint64_t lo) {
          return std::none_of(blocks.begin(), blocks.end(),
                              [&](const Block& b) { return lo < b.hi && b.lo < lo + bytes; });
        };
        std::uint64_t want = 0;
        while (!is_free(want)) want++;
        REQUIRE(at == want);
        blocks.push_back({at, at + bytes, last});
      }
  }
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
  const std::string moved = planned(grads, w, x, target);  // 2 * 7/8 of each gradient: together, or apart
  CHECK((moved == "all_reduce{x,y} 4480" || moved == "all_reduce{x,y} 3584, all_reduce{x,y} 896"));
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
  const auto asked = [&](const Array& v, const Array& w) { return f(sa::filter_shard(v, on(P("x"))), w); };
  std::string said, with_fix;
  {
    const sa::policy::strict guard;
    try {
      sa::explain(f, a, b);
    } catch (const sa::ShardingError& e) { said = e.text(); }
    with_fix = transfers(sa::explain(asked, a, b));
    const sa::policy::auto_ inner;
    CHECK_NOTHROW(sa::explain(f, a, b));
  }
  CHECK_NOTHROW(sa::explain(f, a, b));
  CHECK(said.find("matmul: policy strict refuses an implicit all_gather over {y} of 128 bytes per device for "
                  "operand 0 of its dot f32[8@x,32@y]. Every transfer must be asked for. Cheapest fix: "
                  "reshard(operand 0, "
                  "NamedSharding(mesh, P(\"x\"))) before.") == 0);
  CHECK(with_fix == "all_gather{y} 128");
}

TEST_CASE("policies: follow keeps the larger tensor's axes, whatever it costs") {
  const auto on = on_xy;
  const auto n = sa::none;
  const auto followed = [&](const sa::Sharding& left, const sa::Sharding& right, const sa::Sharding& result) {
    const Array a = placed({8, 32}, left), b = placed({32, 16}, right, 1);
    const auto f = [&](const Array& v, const Array& w) { return sa::filter_shard(sa::matmul(v, w), result); };
    const sa::policy::follow guard;
    return planned(f, a, b);
  };
  CHECK(followed(on(P("x", "y")), on(P(n, "y")), on(P("x", "y"))) == "all_gather{y} 128");
  CHECK(followed(on(P("x", "y")), on(P("y", "x")), on(P(n, "x"))) == "all_gather{x} 384, all_reduce{y} 128");
  CHECK(followed(on(P("x")), on(P("x")), on(P("x"))) == "all_to_all{x} 192, reduce_scatter{x} 384");
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
    } catch (const sa::Error& e) { return e.text(); }
    return "no error";
  };
  const auto d = sa::devices();
  CHECK(message([&] {
          sa::PositionalSharding(std::vector{d[0], d[1], d[0]});
        }) == "PositionalSharding: device " + sa::to_string(d[0]) +
                  " stands at positions 0 and 2 of the grid. Every device holds one "
                  "block. Remove one.");
  const Array left = sa::device_put(
                  numbers({8}), sa::NamedSharding(sa::Mesh({{4}, {d[0], d[1], d[2], d[3]}}, {"i"}), P("i"))),
              right = sa::device_put(
                  numbers({8}), sa::NamedSharding(sa::Mesh({{4}, {d[4], d[5], d[6], d[7]}}, {"i"}), P("i")));
  CHECK(message([&] { sa::jit([](const Array& a, const Array& b) { return a + b; })(left, right); }) ==
        "jit: Received incompatible devices for jitted computation. Got argument 0 with shape f32[8@i] with "
        "device ids [0, 1, 2, 3] on "
        "platform " +
            d[0].platform + " and argument 1 with shape f32[8@i] with device ids [4, 5, 6, 7] on platform " +
            d[0].platform +
            ". All "
            "committed arrays, constraints "
            "and outputs of one computation must be on the same devices. Move one with device_put(x, "
            "sharding).");
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
        "dimension, or holds summands. Remove one of them.");
}

}  // namespace programs_test

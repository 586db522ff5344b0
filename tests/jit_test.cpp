// jit, donation, explain, and trees of arrays put somewhere.
#include <array>
#include <cmath>
#include <thread>

#include "graph/node.h"
#include "runtime/devices.h"
#include "transforms_helpers.h"

namespace jit_test {

using namespace transforms_test;

TEST_CASE("jit: what is traced again") {
  int runs = 0;
  const auto f = sa::jit([&runs](const Model& m, Array x) {
    runs++;
    return m.scale * x * m.layers[0].bias;
  });
  Model m = model();
  check_near(f(m, Array(1.0)), {0.2, -0.4});
  check_near(f(m, Array(2.0)), {0.4, -0.8});  // another value of an array
  CHECK(f.traces() == 1);
  CHECK(runs == 1);
  check_near(f(m, 2.0), {0.4, -0.8});  // a number is static
  m.scale = 3;                         // a static
  check_near(f(m, Array(1.0)), {0.3, -0.6});
  CHECK(f.traces() == 3);
  check_near(f(m, Array(2.0)), {0.6, -1.2});
  CHECK(f.traces() == 3);
  m.layers[1].bias = Array(1.0);  // was absent
  f(m, Array(1.0));
  CHECK(f.traces() == 4);
  m.layers.push_back(m.layers[0]);
  f(m, Array(1.0));
  CHECK(f.traces() == 5);
  m.layers[0].bias = sa::ones({1});
  f(m, Array(1.0));
  CHECK(f.traces() == 6);
  const auto copy = f;
  copy(m, Array(1.0));
  CHECK(f.traces() == 6);
  CHECK(runs == 6);

  const auto text = sa::jit([](Array x, const std::string& how, Array (*g)(const Array&)) {
    return how == "twice" ? g(g(x)) : g(x);
  });
  Array (*square)(const Array&) = [](const Array& x) { return x * x; };
  Array (*negate)(const Array&) = [](const Array& x) { return -x; };
  CHECK(at(text(Array(3.0), std::string("once"), square)) == 9);
  CHECK(at(text(Array(3.0), std::string("twice"), square)) == 81);
  CHECK(at(text(Array(3.0), std::string("once"), negate)) == -3);
  CHECK(at(text(Array(2.0), std::string("once"), square)) == 4);
  CHECK(text.traces() == 3);
}

TEST_CASE("jit: shardings and meshes as arguments are told apart by what they say") {
  const auto f = sa::jit([](const Array& x, const sa::Sharding& s) { return sa::filter_shard(x, s) + 1; });
  const Array x = sa::arange(8).astype(sa::float32);
  const auto grid = [](const sa::Shape& shape) {
    return sa::PositionalSharding(sa::create_device_mesh(shape));
  };
  const auto on = [](const char* axis, int n) {
    return sa::NamedSharding(sa::make_mesh({{axis, n}}), sa::P(axis));
  };
  const std::pair<sa::Sharding, int> calls[] = {// and the traces after them
                                                {grid({8}), 1},
                                                {grid({8}), 1},
                                                {grid({8}).replicate(), 2},
                                                {grid({8}).reshape({2, 4}).reshape({8}), 2},
                                                {on("a", 8), 3},
                                                {on("b", 8), 4},
                                                {on("a", 4), 5},
                                                {on("a", 8), 5},
                                                {sa::SingleDeviceSharding(sa::devices()[2]), 6},
                                                {sa::SingleDeviceSharding(sa::devices()[3]), 7}};
  for (const auto& [s, traces] : calls) {
    const Array y = f(x, s);
    CHECK(f.traces() == traces);
    CHECK(y.sharding() == s);
    CHECK(shardarray::testing::read<float>(y)[7] == 8);
  }
  const auto g = sa::jit([](const Array& v, const sa::Mesh& m) { return v + m.size(); });
  CHECK(g(x, sa::make_mesh({{"a", 8}})).to_vector<float>()[0] == 8);
  CHECK(g(x, sa::make_mesh({{"a", 4}})).to_vector<float>()[0] == 4);
  CHECK(g(x, sa::make_mesh({{"a", 8}})).to_vector<float>()[0] == 8);
  CHECK(g.traces() == 2);
}

TEST_CASE("jit: results") {
  // statics, absent leaves and arguments that pass through
  const auto f = sa::jit([](Model m) {
    m.layers[0].bias = m.layers[0].bias * 2;
    return std::tuple(m, 4, std::string("name"), Array(1.5));
  });
  const Model before = model();
  for (int k = 0; k < 2; k++) {
    const auto [m, four, name, constant] = f(before);
    CHECK(four == 4);
    CHECK(name == "name");
    CHECK(at(constant) == 1.5);
    check_near(m.layers[0].bias, {0.2, -0.4});
    check_near(m.layers[0].weight, {0.5, -1, 2, 0.25});
    CHECK_FALSE(m.layers[1].bias.has_value());
    CHECK(m.steps.item<int>() == 3);
    CHECK(m.scale == 2);
  }
  CHECK(f.traces() == 1);
  CHECK(at(sa::jit([] { return Array(3.0) + 1; })()) == 4);
  // an array that the function captures is an input of the program; a number is part of it
  Array captured = sa::array({1.0, 2.0});
  const auto g = sa::jit([&](Array x) { return x + captured; });
  check_near(g(1.0), {2, 3});
  // jit in jit
  const auto inner = sa::jit([](Array x) { return x * 2; });
  CHECK(at(sa::jit([&](Array x) { return inner(inner(x)); })(1.5)) == 6);
}

TEST_CASE("jit: results are committed where an argument is, whatever ran before") {
  const Array free = sa::array({1, 2, 3}, sa::float32),
              bound = sa::device_put(free, sa::SingleDeviceSharding(sa::devices()[0]));
  const auto f = sa::jit([](Array x) { return x * 3.0; });
  for (int round = 0; round < 2; round++) {
    CHECK_FALSE(f(free).committed());
    CHECK(f(bound).committed());
    const Array eager = free * 5.0, beside = bound * 5.0;
    eager.block_until_ready();
    beside.block_until_ready();
    CHECK_FALSE(eager.committed());
    CHECK(beside.committed());
  }
}

TEST_CASE("jit: bounded cache, static_args, check") {
  const auto f = sa::jit([](Array x, int k) { return x * k; }, {.max_entries = 4});
  for (int k = 0; k < 10; k++) CHECK(at(f(Array(2.0), k)) == 2 * k);
  CHECK(f.traces() == 10);
  CHECK(f.cache_size() == 4);
  // a complex number, too, is part of the program
  const auto turned = sa::jit([](Array x, std::complex<double> z) { return x * Array(z); });
  for (const std::complex<double> z :
       {std::complex(1.0, 2.0), std::complex(1.0, 3.0), std::complex(1.0, 2.0)})
    CHECK(turned(Array(2.0), z).item<std::complex<float>>() == std::complex<float>(2.0 * z));
  CHECK(turned.traces() == 2);

  const auto g = sa::jit([](const Model& m, Array x, int k) { return x * k * m.scale; },
                         {.name = "g", .static_args = {2}});
  CHECK(at(g(model(), 1.0, 3)) == 6);
  const auto h =
      sa::jit([](Array x, const Model& m) { return x * m.scale; }, {.name = "h", .static_args = {1}});
  CHECK(error<sa::TreeError>([&] { h(1.0, model()); }) ==
        "h: argument 1 is static and holds an array at `1.layers[0].weight`. Static arguments are part of "
        "the program. "
        "Remove 1 from static_args, or pass a number.");
  const auto beyond = sa::jit([](Array x) { return x; }, {.static_args = {1}});
  CHECK(error<sa::TreeError>([&] { beyond(Array(1.0)); }) ==
        "jit: static_args names argument 1, the call has 1 argument. Positions count from 0. Correct "
        "static_args.");

  double rate = 1;
  const auto stale = sa::jit([&](Array x) { return x * rate; });
  CHECK(at(stale(Array(2.0))) == 2);
  rate = 5;
  CHECK(at(stale(Array(2.0))) == 2);  // captured at the first trace, as in JAX
  const auto checked = sa::jit([&](Array x) { return x * rate; }, {.check = true});
  CHECK(at(checked(Array(2.0))) == 10);
  CHECK(at(checked(Array(3.0))) == 15);
  rate = 6;
  CHECK(error<sa::TraceError>([&] { checked(Array(2.0)); }) != "no such error");
}

TEST_CASE("jit: reading inside a trace and escaping from it") {
  CHECK(error<sa::TraceError>([] { sa::jit([](Array x) { return x * x.item<float>(); })(Array(1.0)); }) !=
        "no such error");
  CHECK(error<sa::TraceError>([] { sa::jit([](Array x) { return x > 0 ? x : -x; })(Array(1.0)); }) !=
        "no such error");
  CHECK(error<sa::TraceError>([] { sa::vmap([](Array x) { return x * x.item<float>(); })(sa::ones({2})); }) !=
        "no such error");
  Array leak;
  sa::jit([&](Array x) {
    leak = x * x;
    return x;
  })(Array(1.0));
  CHECK(error<sa::TraceError>([&] { leak.item<float>(); }) != "no such error");
  CHECK(error<sa::TraceError>([&] { sa::jit([&](Array x) { return x + leak; })(Array(1.0)); }) !=
        "no such error");
  // the library goes on working
  CHECK(at(sa::jit([](Array x) { return x + 1; })(Array(1.0))) == 2);
}

TEST_CASE("jit: donation by move") {
  const auto f = sa::jit([](const Model& m) { return sa::tree_map([](const Array& a) { return a * 2; }, m); },
                         {.name = "double_all"});
  Model m = model();
  const Model keep = m;
  Model twice = f(std::move(m));
  check_near(twice.layers[0].bias, {0.2, -0.4});
  CHECK(m.layers[0].bias.is_deleted());
  CHECK(contains(error<sa::DonationError>([&] { m.layers[0].bias + 1; }), "double_all"));
  CHECK(contains(error<sa::DonationError>([&] { f(m); }), "0.layers[0].weight"));
  check_near(keep.layers[0].bias, {0.1, -0.2});  // the other owner keeps its value
  twice = f(std::move(twice));
  check_near(twice.layers[0].bias, {0.4, -0.8});
  CHECK(f.traces() == 1);

  Array x = sa::array({1.0, 2.0});
  f(model());
  const auto first = sa::jit([](const auto& t) { return std::get<0>(t) + 1; });
  check_near(first(std::tuple(x, x)), {2, 3});  // a temporary of other owners gives nothing away
  CHECK_FALSE(x.is_deleted());
  const auto increment = sa::jit([](Array a) { return a + 1; });
  check_near(increment(sa::donated(x)), {2, 3});
  CHECK(x.is_deleted());

  // a call that throws takes nothing
  const auto thrower = sa::jit([](Array a) {
    if (a.ndim() == 1) throw std::runtime_error("user error");
    return a;
  });
  Array y = sa::array({1.0, 2.0});
  CHECK_THROWS_WITH(thrower(std::move(y)), "user error");
  check_near(y, {1, 2});
}

TEST_CASE("jit: a result that is stored under another shape takes the place of a donated argument") {
  const auto f = sa::jit([](const Array& a, const Array& row) {
    return (a.reshape({2, 4}) + row).reshape({8});
  });
  Array x = sa::arange(8, sa::float32) + 0.0;
  const Array row = sa::array({0.0, 10.0, 20.0, 30.0}, sa::float32);
  const auto donations = sa::explain(f, sa::donated(x), row).donations();
  REQUIRE(donations.size() == 1);
  CHECK(donations[0].reused);
  check_near(f(std::move(x), row), {0, 11, 22, 33, 4, 15, 26, 37});
}

TEST_CASE("jit: donation by option") {
  const auto all =
      sa::jit([](Array a, Array b) { return std::pair(a + 1, b + 1); }, {.donate = sa::Donate::all});
  Array x = sa::array({1.0, 2.0}), y = sa::array({3.0, 4.0}), other = x;
  const auto [p, q] = all(x, y);
  check_near(p, {2, 3});
  check_near(q, {4, 5});
  CHECK(x.is_deleted());
  CHECK(other.is_deleted());  // as in JAX the buffer dies for every handle
  CHECK(y.is_deleted());
  const auto rest = sa::jit([](Array a, Array b) { return std::pair(a + 1, b + 1); },
                            {.donate = sa::Donate::all_except_first});
  Array u = sa::array({1.0, 2.0}), v = sa::array({3.0, 4.0});
  rest(u, v);
  CHECK_FALSE(u.is_deleted());
  CHECK(v.is_deleted());
}

TEST_CASE("jit: what pending work still reads is not taken by option") {
  const auto f = sa::jit([](Array a) { return a + 1; }, {.donate = sa::Donate::all});
  const std::vector<std::pair<const char*, Array (*)(const Array&)>> readers = {
      {"an op", [](const Array& x) { return x * 2; }},
      {"a chain", [](const Array& x) { return sa::flip(sa::exp(x), 0) + 1; }},
      {"twice", [](const Array& x) { return x * x; }},
      {"a constraint",
       [](const Array& x) { return sa::filter_shard(x * 2, sa::SingleDeviceSharding(sa::devices()[1])); }},
      {"a call", [](const Array& x) { return sa::jit([](Array v) { return sa::sum(v); })(x); }},
      {"a gradient", [](const Array& x) { return sa::grad([](Array v) { return sa::sum(v * v); })(x); }},
  };
  for (const auto& row : readers) {
    const auto& name = row.first;
    const auto& reader = row.second;
    INFO(name);
    const std::vector<double> truth = reader(sa::array({1.0, 2.0, 5.0})).to_vector<double>();
    Array x = sa::array({1.0, 2.0, 5.0});
    const Array lazy = reader(x);
    check_near(f(x), {2, 3, 6});
    CHECK(lazy.to_vector<double>() == truth);
    if (!x.is_deleted()) check_near(x, {1, 2, 5});
    Array once_read = sa::array({1.0, 2.0, 5.0});
    const Array done = reader(once_read);
    done.block_until_ready();
    check_near(f(once_read), {2, 3, 6});
    CHECK(once_read.is_deleted());  // nobody needs it any more
    CHECK(done.to_vector<double>() == truth);
  }
}

TEST_CASE("jit: a captured array is not read by the trace that took it in") {
  const auto x = sa::array({1.0, 2.0});
  for (const bool twice : {false, true}) {
    Array captured = sa::array({3.0, 4.0});
    const auto f = sa::jit([=](Array v) {
      const Array w = v * captured;
      return twice ? w + captured : w;
    });
    CHECK(f(x).to_vector<double>() == std::vector<double>{twice ? 6. : 3., twice ? 12. : 8.});
    CHECK(captured.node()->readers() == 0);
    const auto refs = captured.node()->refs();
    const auto g =
        sa::grad([&](Array v) { return sa::sum(sa::jit([&](Array u) { return u * captured; })(v)); });
    CHECK(g(x).to_vector<double>() == std::vector<double>{3, 4});
    const Array pending = captured * 2;
    CHECK(captured.node()->readers() == 1);
    pending.block_until_ready();
    CHECK(captured.node()->readers() == 0);
    CHECK(captured.node()->refs() >= refs);
  }
}

TEST_CASE("jit: a callback that throws when the program has run leaves nothing of what was donated") {
  const auto f = sa::jit([](Array a) {
    const Array b = a + 1;
    sa::debug::callback(
        [](const sa::HostValues& v) {
          if (v.arrays[0].item<float>() > 100) throw std::runtime_error("too large");
        },
        {sa::sum(b)});
    return b;
  });
  Array small = sa::ones({4}), large = sa::full({4}, 50.f), kept = sa::full({4}, 60.f);
  large.block_until_ready(), small.block_until_ready(), kept.block_until_ready();
  check_near(f(std::move(small)), {2, 2, 2, 2});
  CHECK_THROWS_WITH(f(std::move(large)), doctest::Contains("too large"));
  CHECK(large.is_deleted());
  CHECK_THROWS_AS(f(large), sa::DonationError);
  CHECK_THROWS_AS(f(kept), std::runtime_error);
  check_near(kept, {60, 60, 60, 60});
  check_near(f(sa::zeros({4})), {1, 1, 1, 1});
}

TEST_CASE("jit: functions within, with very many results, are told apart") {
  const auto many = sa::jit([](const Array& x) {
    std::vector<Array> all;
    for (int k = 0; k < 65; k++) all.push_back(x * (k + 1.0));
    return all;
  });
  const auto last = sa::jit([&](const Array& x) {
    const auto all = many(x);
    return std::tuple(all[64], -all[0]);
  });
  const auto first = sa::jit([&](const Array& x) {
    const Array y = -many(x)[0];
    return std::tuple(y, y);
  });
  const auto outer = [](const auto& f) { return sa::jit([&](const Array& x) { return f(x); }); };
  CHECK(at(std::get<0>(outer(last)(Array(1.0)))) == 65);
  CHECK(at(std::get<0>(outer(first)(Array(1.0)))) == -1);
}

TEST_CASE("jit: what is free goes to the default device of each call") {
  const auto f = sa::jit([] { return sa::ones({4}); });
  CHECK(f().devices()[0].id == 0);
  {
    const sa::default_device d(sa::devices()[1]);
    CHECK(f().devices()[0].id == 1);
  }
  CHECK(f().devices()[0].id == 0);
  // and what it takes there counts there
  const sa::default_device d(sa::devices()[3]);
  const auto in_use = [] { return sa::backend(sa::devices()[0].platform).memory_stats(3).in_use; };
  const auto before = in_use();
  const Array x = sa::block_until_ready(f());
  CHECK(in_use() >= before + 16);
}

TEST_CASE("jit: from several threads") {
  const auto f = sa::jit([](Array x, int k) { return sa::sum(x * k); });
  std::vector<std::thread> threads;
  std::array<double, 4> got{};
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 20; k++) got[static_cast<std::size_t>(t)] += at(f(sa::ones({3}) * t, k % 3));
    });
  for (std::thread& t : threads) t.join();
  for (int t = 0; t < 4; t++)
    CHECK(got[static_cast<std::size_t>(t)] == 3.0 * t * 19);  // k % 3 over 20 calls: 19
}

TEST_CASE("trees with values") {
  const Model m = model();
  Model n = model();
  CHECK(sa::tree_equal(m, n));
  n.scale = 3;
  CHECK_FALSE(sa::tree_equal(m, n));
  n = model();
  n.layers[0].bias = sa::array({0.1, -0.3});
  CHECK_FALSE(sa::tree_equal(m, n));
  n.layers[0].bias = sa::array({{0.1, -0.2}});
  CHECK_FALSE(sa::tree_equal(m, n));
  n = model();
  n.layers[0].bias = Array();
  CHECK_FALSE(sa::tree_equal(m, n));
  n.layers.pop_back();
  CHECK_FALSE(sa::tree_equal(m, n));

  Model updates = sa::filter(model(), sa::is_inexact_array);
  const Model moved = sa::apply_updates(m, updates);
  check_near(moved.layers[0].bias, {0.2, -0.4});
  CHECK(moved.steps.item<int>() == 3);
  updates.layers.pop_back();
  CHECK(error<sa::TreeError>([&] { sa::apply_updates(m, updates); }) ==
        "apply_updates: tree 1 has 1 entry at `layers`, the first tree has 2. All trees must have the same "
        "sizes and "
        "keys. Make one from the other, with tree_map() or with_leaves().");
  sa::eval(moved, m);
  CHECK(&sa::block_until_ready(moved) == &moved);
}

TEST_CASE("filter_shard and device_put of trees") {
  const auto sharding = sa::PositionalSharding(sa::create_device_mesh({sa::device_count(), 1}));
  const auto replicated = sharding.replicate();
  const auto [m, k] = sa::filter_shard(std::pair(model(), 7), replicated);
  CHECK(k == 7);
  CHECK(m.layers[0].weight.is_fully_replicated());
  CHECK(m.layers[0].weight.committed());
  CHECK(sa::tree_equal(m, model()));
  const Array x = sa::block_until_ready(sa::reshape(sa::arange(32), {16, 2}));
  const auto [a, b] = sa::filter_shard(std::tuple(x, x), std::tuple(sharding, sa::none));
  CHECK(a.sharding().is_equivalent_to(sharding, 2));
  CHECK_FALSE(b.committed());
  const Array on_last = sa::device_put(x, sa::devices().back());
  CHECK(on_last.devices() == std::vector{sa::devices().back()});
  check_near(on_last, values(x));
  // inside a trace: a constraint
  const auto f = sa::jit([&](Array v) { return sa::filter_shard(v * 2, sharding); });
  CHECK(f(x).sharding().is_equivalent_to(sharding, 2));
  CHECK(contains(error<sa::ShardingError>([&] { sa::filter_shard(std::pair(x, Array(1.0)), sharding); }),
                 "rank"));
}

TEST_CASE("arrays from host data") {
  CHECK(sa::array({1, 2}).dtype() == sa::int32);
  CHECK(sa::array({1, 2.5}).dtype() == sa::float32);
  CHECK(sa::array({true, false}).dtype() == sa::bool_);
  CHECK(sa::array(std::vector<double>{1, 2}).dtype() == sa::float64);
  CHECK(sa::array(std::vector<std::int64_t>{1, 2}).dtype() == sa::int64);
  CHECK(sa::array({1, 2}, sa::float16).dtype() == sa::float16);
  CHECK(sa::array({3000000000}, sa::int64).item<std::int64_t>() == 3000000000);
  // Read as another type: converted as astype() does it.
  CHECK(sa::array({256, 0, -1}).to_vector<bool>() == std::vector<bool>{true, false, true});
  CHECK(sa::array({0.5, -0.5, 0.0}).to_vector<bool>() == std::vector<bool>{true, true, false});
  CHECK(sa::array({1e20, -1e20, -3.5, double(NAN)}).to_vector<int>() ==
        std::vector<int>{2147483647, -2147483647 - 1, -3, 0});
  const Array x = sa::array({{1.5, 2.0}, {3.0, 4.0}});
  CHECK(x.shape() == Shape{2, 2});
  check_near(x, {1.5, 2, 3, 4});
  CHECK(sa::array({1, 2, 3, 4}, {2, 2}).shape() == Shape{2, 2});
  CHECK(sa::array(std::vector<float>{}, {0, 3}).shape() == Shape{0, 3});
  CHECK(at(sa::asarray(2.5)) == 2.5);
  CHECK(sa::asarray(x, sa::float64).dtype() == sa::float64);

  const sa::Mesh mesh = sa::make_mesh({{"x", sa::device_count()}});
  const sa::Sharding sharding = sa::NamedSharding(mesh, sa::P("x"));
  int calls = 0;
  const Array y = sa::make_array_from_callback({16}, sharding, [&](const sa::ShardIndex& index) {
    calls++;
    std::vector<float> piece;
    const auto [start, stop] = index[0].whole ? std::pair<std::int64_t, std::int64_t>(0, 16)
                                              : std::pair(index[0].start, index[0].stop);
    for (std::int64_t k = start; k < stop; k++) piece.push_back(static_cast<float>(k * k));
    return piece;
  });
  CHECK(calls == sa::device_count());
  Values squares;
  for (int k = 0; k < 16; k++) squares.push_back(k * k);
  check_near(y, squares);
  std::vector<Array> pieces;
  for (const sa::Shard& s : y.addressable_shards()) pieces.push_back(s.data);
  std::swap(pieces.front(), pieces.back());  // any order
  check_near(sa::make_array_from_single_device_arrays({16}, sharding, pieces), squares);
}

TEST_CASE("explain takes what the call takes, and nothing away") {
  const auto f = sa::jit([](Array a, Array b) { return std::pair(a + b, a * 2); });
  Array x = sa::ones({4}), y = sa::ones({4});
  const sa::Explanation e = sa::explain(f, std::move(x), sa::donated(y));
  CHECK(e.transfers().empty());
  REQUIRE(e.donations().size() == 2);
  CHECK(e.donations()[0].path == "0");
  CHECK(e.donations()[1].path == "1");
  CHECK(e.peak_bytes_per_device >= 32);
  CHECK_FALSE(e.to_string().empty());
  check_near(x, {1, 1, 1, 1});
  check_near(y, {1, 1, 1, 1});
  CHECK(f.traces() == 1);
  f(std::move(x), std::move(y));
  CHECK(f.traces() == 1);  // the explained program is the one that runs
  CHECK(contains(sa::print_graph([](Array a) { return sa::sin(a); }, sa::ones({4})), "sin"));
}

}  // namespace jit_test

// What is promised of arrays, modes, jit, grad, collectives and explain, where no other test shows it.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "printed.h"
#include "program_of.h"
#include "shardarray/shardarray.h"

namespace promises_arrays_test {

namespace sa = shardarray;
using program_test::numbers;
using program_test::values;
using sa::Array;
using sa::P;
using sa::Shape;
using shardarray::testing::Printed;

namespace {

using Values = std::vector<double>;

template <class E, class F> std::string message(const F& f) {
  try {
    f();
  } catch (const E& e) { return e.text(); }
  return "";
}
std::vector<int> ids(const Array& x) {
  std::vector<int> r;
  for (const sa::Device& d : x.devices()) r.push_back(d.id);
  return r;
}
sa::Sharding eight(const P& spec) { return sa::NamedSharding(sa::make_mesh({{"x", 8}}), spec); }

}  // namespace

// ---------------------------------------------------------------- arrays
TEST_CASE("promises: one element, of a type that holds it") {
  CHECK(message<sa::ShapeError>([] { sa::ones({2}).item<float>(); }) != "");
  CHECK(message<sa::ShapeError>([] { sa::ones({0}).item<float>(); }) != "");
  CHECK(sa::full({1, 1}, 3).item<int>() == 3);
  const Array f = sa::array({2.5}), d = sa::array({2.5}, sa::float64), i = sa::array({7}),
              w = sa::array({7}, sa::int64), u = sa::array({7}, sa::uint32);
  CHECK(f.item<double>() == 2.5);
  CHECK(i.item<double>() == 7);
  CHECK(i.item<std::int64_t>() == 7);
  CHECK(u.item<std::int64_t>() == 7);
  CHECK(sa::array({true}).item<int>() == 1);
  CHECK(message<sa::DTypeError>([&] { f.item<int>(); }) ==
        "item: a value of float32 does not fit exactly into int32. A number is read into a type that holds "
        "every "
        "one. Say x.item<float>(), or x.astype(int32).item<int>().");
  CHECK(message<sa::DTypeError>([] {
          sa::array({7}, sa::int64)[0].item<bool>();
        }).ends_with("Say x.item<std::int64_t>(), or x.astype(bool_).item<bool>()."));
  CHECK(message<sa::DTypeError>([&] { d.item<float>(); }) != "");
  CHECK(message<sa::DTypeError>([&] { w.item<int>(); }) != "");
  CHECK(message<sa::DTypeError>([&] { w.item<double>(); }) != "");
  CHECK(message<sa::DTypeError>([&] { i.item<float>(); }) != "");
  CHECK(message<sa::DTypeError>([&] { i.item<std::uint32_t>(); }) != "");
  CHECK(message<sa::DTypeError>([&] { u.item<int>(); }) != "");
  CHECK(bool(sa::array({2})));
  CHECK_FALSE(bool(sa::zeros({1, 1})));
  CHECK(message<sa::ShapeError>([] { (void)bool(sa::ones({2})); }) != "");
}

TEST_CASE("promises: absent arrays have nothing, and say so") {
  const Array none;
  CHECK_FALSE(none.has_value());
  CHECK(message<sa::Error>([&] { none.shape(); }).find("the array is absent") != std::string::npos);
  CHECK(message<sa::Error>([&] { none.to_vector<float>(); }).find("the array is absent") !=
        std::string::npos);
  CHECK(sa::ones({2}).has_value());
}

TEST_CASE("promises: pieces stand in the order of the devices, with index, replica and a view of the data") {
  auto reversed = sa::devices();
  std::reverse(reversed.begin(), reversed.end());
  const sa::Mesh mesh({{4, 2}, reversed}, {"x", "y"});
  const Array x = sa::device_put(sa::arange(8), sa::NamedSharding(mesh, P("x")));
  const std::vector<sa::Shard> all = x.addressable_shards();
  REQUIRE(all.size() == 8);
  for (int k = 0; k < 8; k++) {
    const sa::Shard& s = all[static_cast<std::size_t>(k)];
    CHECK(s.device.id == 7 - k);
    CHECK(s.index == sa::ShardIndex{{false, k / 2 * 2, k / 2 * 2 + 2}});
    CHECK(s.replica_id == k % 2);
    CHECK(ids(s.data) == std::vector{7 - k});
    CHECK(values(s.data) == Values{k / 2 * 2.0, k / 2 * 2.0 + 1});
    CHECK(values(x.addressable_data(k)) == values(s.data));
  }
  CHECK(x.devices() == sa::devices());  // sorted
  CHECK(x.nbytes() == 32);              // however many copies there are
  const Array whole = sa::device_put(sa::arange(3), eight(P()));
  CHECK(whole.nbytes() == 12);
  CHECK(values(whole.addressable_data(0)) == Values{0, 1, 2});
  CHECK(ids(whole.addressable_data(0)) == std::vector{0});
}

TEST_CASE("promises: a callback is asked once for each part, and its data may be flat") {
  std::vector<std::string> asked;
  const auto piece = [&](const sa::ShardIndex& index) {
    asked.push_back(sa::to_string(index));
    return std::vector<float>(6, static_cast<float>(index[0].start));  // of [2, 3]
  };
  const sa::Sharding rows = sa::NamedSharding(sa::make_mesh({{"x", 4}, {"y", 2}}), P("x"));
  const Array x = sa::make_array_from_callback({8, 3}, rows, piece);
  std::sort(asked.begin(), asked.end());
  CHECK(asked == std::vector<std::string>{"(0:2, :)", "(2:4, :)", "(4:6, :)", "(6:8, :)"});
  CHECK(values(sa::sum(x, 1)) == Values{0, 0, 6, 6, 12, 12, 18, 18});
  CHECK(message<sa::ShapeError>([&] {
          sa::make_array_from_callback({8, 3}, rows, [](const auto&) { return std::vector<float>(5); });
        }) != "");
}

TEST_CASE("promises: arrays of single devices become one without a copy") {
  std::vector<Array> pieces;
  for (const sa::Device& d : sa::devices())
    pieces.push_back(sa::block_until_ready(sa::device_put(numbers({2}, sa::float32, d.id), d)));
  const Array x = sa::make_array_from_single_device_arrays({16}, eight(P("x")), pieces);
  for (std::size_t k = 0; k < 8; k++)
    CHECK(sa::value_of(x)->buffers[k]->data == sa::value_of(pieces[k])->buffers[0]->data);
}

TEST_CASE("promises: shapes of six sizes need no heap; sizes that are none are refused") {
  const Shape six{1, 2, 3, 4, 5, 6}, seven{1, 2, 3, 4, 5, 6, 7};
  const auto inside = [](const Shape& s) {
    const auto* at = reinterpret_cast<const char*>(s.data());
    const auto* own = reinterpret_cast<const char*>(&s);
    return at >= own && at < own + sizeof s;
  };
  CHECK(inside(six));
  CHECK_FALSE(inside(seven));
  CHECK(message<sa::ShapeError>([] { sa::num_elements({3, -1}); }) != "");
  CHECK(message<sa::ShapeError>([] { sa::num_elements({-1, 0}); }) != "");
  CHECK(sa::to_int64(~std::uint64_t{0}) == std::numeric_limits<std::int64_t>::max());
  CHECK(sa::to_int64(-5) == -5);
  CHECK(sa::Device{3, "cpu", 0, "a"} == sa::Device{3, "cpu", 1, "b"});
  CHECK_FALSE(sa::Device{3, "cpu"} == sa::Device{3, "cuda"});
}

TEST_CASE("promises: every exception is an Error with a text") {
  const auto is_error = []<class E>(const E&) {
    static_assert(std::is_base_of_v<sa::Error, E> && std::is_base_of_v<std::runtime_error, E>);
    try {
      throw E("function: what. rule. remedy.");
    } catch (const sa::Error& e) { return std::string(e.text()) == "function: what. rule. remedy."; }
  };
  const std::string t;
  CHECK(is_error(sa::ShapeError(t)));
  CHECK(is_error(sa::DTypeError(t)));
  CHECK(is_error(sa::ShardingError(t)));
  CHECK(is_error(sa::DeviceError(t)));
  CHECK(is_error(sa::DonationError(t)));
  CHECK(is_error(sa::TraceError(t)));
  CHECK(is_error(sa::TreeError(t)));
  CHECK(is_error(sa::IoError(t)));
  CHECK(is_error(sa::CompileError(t)));
  CHECK(is_error(sa::PlanError(t)));
  CHECK(is_error(sa::TransportError(t)));
  CHECK(is_error(sa::OutOfMemory(t)));
  CHECK(is_error(sa::InternalError(t)));
}

TEST_CASE("promises: ops inside a Site carry its line, and errors the outermost name") {
  const sa::Where outer = sa::Where::here("outer.cpp", 7), inner = sa::Where::here("inner.cpp", 9);
  const sa::Site site(outer, "my_function");
  const sa::Site within(inner, "helper");
  const Array x = sa::ones({2}) + 1;
  CHECK(x.node()->where.file == std::string("outer.cpp"));
  CHECK(x.node()->where.line == 7);
  CHECK(message<sa::ShapeError>([] { sa::zeros({2, -1}); }).starts_with("my_function: "));
}

// ---------------------------------------------------------------- modes
TEST_CASE("promises: the default device is that of the line, wherever the value is asked for") {
  Array lazy, from_host;
  {
    const sa::default_device here(sa::devices()[3]);
    lazy = sa::ones({4}) * 2;
    from_host = sa::array({1, 2});
  }
  const Array outside = sa::ones({4}) * 2;
  CHECK(ids(lazy) == std::vector{3});
  CHECK(ids(from_host) == std::vector{3});
  const sa::default_device there(sa::devices()[5]);
  CHECK(ids(outside) == std::vector{0});
}

TEST_CASE("promises: modes are those of one thread") {
  const Array a = sa::device_put(numbers({8, 8}), eight(P("x"))),
              b = sa::device_put(numbers({8, 8}), eight(P(sa::none, "x"))), key = sa::random::key(1);
  const auto total = sa::jit([](const Array& x) { return sa::sum(x); });
  const auto plain = sa::explain(total, a).transfers().size();
  const std::vector<std::uint32_t> bits = sa::random::bits(key, {5}).to_vector<std::uint32_t>();
  const sa::reproducible on(true);
  const sa::policy::strict here;
  const sa::random::partitionable older(false);
  CHECK(sa::random::bits(key, {5}).to_vector<std::uint32_t>() != bits);
  CHECK(message<sa::ShardingError>([&] { (a + b).block_until_ready(); }) != "");
  std::thread([&] {
    CHECK(sa::random::bits(key, {5}).to_vector<std::uint32_t>() == bits);
    CHECK(message<sa::ShardingError>([&] { (a + b).block_until_ready(); }) == "");
    CHECK(sa::explain(total, a).transfers().size() == plain);
  }).join();
}

TEST_CASE("promises: guards of policies nest, and jit keeps their programs apart") {
  const Array a = sa::device_put(numbers({8, 8}), eight(P("x"))),
              b = sa::device_put(numbers({8, 8}), eight(P(sa::none, "x")));
  const auto add = sa::jit([](const Array& x, const Array& y) { return x + y; });
  const Values want = values(numbers({8, 8}) * 2);
  CHECK(values(add(a, b)) == want);
  const sa::policy::strict outer;
  CHECK(message<sa::ShardingError>([&] { add(a, b); }) != "");
  {
    const sa::policy::follow middle;
    CHECK(values(add(a, b)) == want);
    const sa::policy::auto_ inner;
    CHECK(values(add(a, b)) == want);
  }
  CHECK(message<sa::ShardingError>([&] { add(a, b); }) != "");
}

TEST_CASE("promises: a trace is that of one thread; callbacks run on the caller's") {
  std::string read, used;
  sa::jit([&](const Array& x) {
    std::thread([&] {
      read = message<sa::TraceError>([&] { x.item<float>(); });
      used = message<sa::TraceError>([&] { (x + 1).item<float>(); });
    }).join();
    return x;
  })(Array(1.0f));
  CHECK(read != "");
  CHECK(used != "");
  std::vector<std::thread::id> callers;
  std::vector<int> order;
  const auto f = sa::jit([&](const Array& x) {
    for (int k = 0; k < 4; k++)
      sa::debug::callback(
          [&, k](const sa::HostValues&) {
            callers.push_back(std::this_thread::get_id());
            order.push_back(k);
          },
          {x * k});
    return x;
  });
  std::thread::id second;
  f(sa::device_put(numbers({64}), eight(P("x"))));
  std::thread([&] {
    second = std::this_thread::get_id();
    f(sa::device_put(numbers({64}), eight(P("x"))));
  }).join();
  const auto here = std::this_thread::get_id();
  CHECK((callers == std::vector{here, here, here, here, second, second, second, second}));
  CHECK(order == std::vector{0, 1, 2, 3, 0, 1, 2, 3});
}

// ---------------------------------------------------------------- jit, grad, collectives
TEST_CASE("promises: in_shardings and out_shardings that do not fit name the array and the jitted function") {
  const sa::Sharding rows = sa::NamedSharding(sa::make_mesh({{"x", 8}}), sa::P("x"));
  const auto two = [](const std::pair<Array, Array>& p) { return std::pair(p.first, sa::sum(p.second)); };
  const auto said = [&](sa::JitOptions o) {
    return message<sa::ShardingError>(
        [&] { sa::eval(sa::jit(two, std::move(o))(std::pair(sa::ones(8), sa::Array(1.0)))); });
  };
  const std::string annotation =
      "is incompatible with its sharding annotation NamedSharding(mesh=Mesh('x': 8), "
      "spec=PartitionSpec('x',)): ";
  CHECK(said({.name = "step", .in_shardings = rows})
            .starts_with("step: One of its arguments " + annotation + "0[1] f32[]: "));
  CHECK(said({.name = "step", .out_shardings = rows})
            .starts_with("step: One of its results " + annotation + "result 1 f32[]: "));
}

TEST_CASE("promises: in_shardings and out_shardings hold for every array, donate_args for its positions") {
  const sa::Sharding rows = eight(P("x")), whole = eight(P());
  const auto f =
      sa::jit([](const std::pair<Array, Array>& p) { return std::pair(p.first + 1, p.second * 2); },
              {.in_shardings = rows, .out_shardings = whole});
  const auto [a, b] = f(std::pair(numbers({16}), numbers({8, 2})));
  CHECK(values(a) == values(numbers({16}) + 1));
  CHECK(values(b) == values(numbers({8, 2}) * 2));
  CHECK(a.sharding().is_equivalent_to(whole, 1));
  CHECK(b.sharding().is_equivalent_to(whole, 2));
  const auto cut = sa::jit([](const Array& x) { return x * 2; }, {.in_shardings = rows});
  CHECK(cut(numbers({16})).sharding().is_equivalent_to(rows, 1));
  const auto second = sa::jit([](const Array& x, const Array& y) { return x + y; }, {.donate_args = {1}});
  const Array x = numbers({4}) * 1, y = numbers({4}) * 2;
  CHECK(values(second(x, y)) == values(numbers({4}) * 3));
  CHECK_FALSE(x.is_deleted());
  CHECK(y.is_deleted());
}

TEST_CASE("promises: reshard and with_sharding_constraint are filter_shard, in jit and outside") {
  const sa::Sharding rows = eight(P("x"));
  const auto trees = [&](const auto& put) {
    const auto check = [&](const std::tuple<Array, int>& t) {
      CHECK(std::get<0>(t).sharding() == rows);
      CHECK(std::get<0>(t).committed());
      CHECK(values(std::get<0>(t)) == values(numbers({16})));
      CHECK(std::get<1>(t) == 3);
    };
    check(put(std::tuple(numbers({16}), 3)));
    check(sa::jit(put)(std::tuple(numbers({16}), 3)));
  };
  trees([&](std::tuple<Array, int> t) { return sa::reshard(t, rows); });
  trees([&](std::tuple<Array, int> t) { return sa::with_sharding_constraint(t, rows); });
  trees([&](std::tuple<Array, int> t) { return sa::filter_shard(t, rows); });
}

TEST_CASE("promises: gradients with respect to three arguments, and to arguments of other types") {
  const auto f = [](Array x, Array y, Array z) { return x * y * y * z; };
  const auto [x, y, z] = sa::grad(f, {.argnums = {0, 1, 2}})(2.0, 3.0, 5.0);
  CHECK(values(x) == Values{45});
  CHECK(values(y) == Values{60});
  CHECK(values(z) == Values{18});
  const auto [value, turned] = sa::value_and_grad(f, {.argnums = {2, 0, 1}})(2.0, 3.0, 5.0);
  CHECK(values(value) == Values{90});
  CHECK(values(std::get<0>(turned)) == Values{18});
  struct Scale {
    Array by;
  };
  const auto g = [](const Scale& s, Array v, const std::vector<Array>& w) {
    return std::pair(sa::sum(s.by * v * w[0]), v + 1);
  };
  const auto [grads, aux] = sa::grad<0, 2>(g, {.has_aux = true})(Scale{2.0}, sa::array({3.0, 4.0}),
                                                                 std::vector<Array>{sa::array({5.0, 6.0})});
  CHECK(values(std::get<0>(grads).by) == Values{39});
  CHECK(values(std::get<1>(grads)[0]) == Values{6, 8});
  CHECK(values(aux) == Values{4, 5});
  const auto both = sa::value_and_grad<1>(g, {.has_aux = true})(Scale{2.0}, sa::array({3.0, 4.0}),
                                                                std::vector<Array>{sa::array({5.0, 6.0})});
  CHECK(values(both.first.first) == Values{78});
  CHECK(values(both.second) == Values{10, 12});
}

TEST_CASE("promises: every collective takes a tree, leaf by leaf") {
  struct Two {
    Array a;
    std::vector<Array> b;
  };
  const auto check = [](const auto& f) {
    const Array x = numbers({4, 4, 2}), y = numbers({4, 4, 2}, sa::float32, 3);
    const auto one = sa::vmap([&](const Array& v) { return Array(f(v)); }, {.axis_name = "i"});
    const Two got = sa::vmap([&](const Two& t) { return f(t); }, {.axis_name = "i"})(Two{x, {y}});
    CHECK(values(got.a) == values(one(x)));
    CHECK(values(got.b[0]) == values(one(y)));
    CHECK(values(got.a) != values(got.b[0]));
  };
  check([](const auto& v) { return sa::psum(v, "i"); });
  check([](const auto& v) { return sa::pmean(v, "i"); });
  check([](const auto& v) { return sa::ppermute(v, "i", {{0, 1}, {3, 2}}); });
  check([](const auto& v) { return sa::pshuffle(v, "i", {2, 0, 3, 1}); });
  check([](const auto& v) { return sa::pbroadcast(v, "i", 2); });
  check([](const auto& v) { return sa::pswapaxes(v, "i", 0); });
  check([](const auto& v) { return sa::all_gather(v, "i"); });
  check([](const auto& v) { return sa::psum_scatter(v, "i"); });
  check([](const auto& v) { return sa::all_to_all(v, "i"); });
  check([](const auto& v) { return sa::pmax(v, "i", {{{0, 1}, {2, 3}}}); });
  check([](const auto& v) { return sa::pmin(v, "i", {{{0, 1}, {2, 3}}}); });
}

// ---------------------------------------------------------------- explain, pictures
TEST_CASE("promises: explain says of a transfer what, where, why and how much, and of a call its work") {
  const Array a = sa::device_put(numbers({16, 8}), eight(P(sa::none, "x"))),
              b = sa::device_put(numbers({8, 4}), eight(P("x")));
  const auto f = sa::jit([](const Array& x, const Array& y) { return sa::tanh(sa::matmul(x, y)); });
  const int line = __LINE__ - 1;
  const sa::Explanation e = sa::explain(f, a, b);
  REQUIRE(e.transfers().size() == 1);
  const sa::TransferInfo& t = e.transfers()[0];
  CHECK((t.kind == "all_reduce" || t.kind == "reduce_scatter"));
  CHECK(t.axes == "{x}");
  CHECK_FALSE(t.reason.empty());
  CHECK(t.op == "tanh");
  CHECK(t.source.ends_with("promises_arrays_test.cpp:" + std::to_string(line)));
  CHECK(t.shape == Shape{16, 4});
  CHECK(t.dtype == sa::float32);
  CHECK(t.bytes_per_device == (t.kind == "all_reduce" ? 2 : 1) * 7 * 16 * 4 * 4 / 8);
  CHECK(t.moved_bytes > 0);
  CHECK(e.flops >= 2 * 16 * 4);  // a column and a row each
  const auto product = [](const Array& x, const Array& y) { return sa::matmul(x, y); };
  CHECK(sa::explain(product, numbers({16, 8}), numbers({8, 4})).flops == 2 * 16 * 8 * 4);
  CHECK(e.peak_bytes_per_device >= 16 * 4 + 4 * 4);
  CHECK(e.steps_per_device >= 1);
  std::ostringstream out;
  out << e;
  CHECK(out.str() == e.to_string());
  const std::string place = t.source.substr(t.source.rfind('/') + 1);
  for (const std::string& part : {t.kind, t.axes, place, t.reason})
    CHECK(e.to_string().find(part) != std::string::npos);
  int seen = 0;  // of an Explanation that is gone
  for (const sa::TransferInfo& of : sa::explain(f, a, b).transfers()) seen += of.op == "tanh";
  CHECK(seen == 1);
}

TEST_CASE("promises: a summary has each kind of transfer once, and donations in vain") {
  const auto cut = [](std::int64_t rows) { return sa::device_put(numbers({rows, 8}), eight(P("x"))); };
  const auto whole = eight(P());
  const auto f = sa::jit(
      [&](std::vector<Array> parts, const Array& unused) {
        for (Array& a : parts) a = sa::filter_shard(a * 2, whole);
        return std::pair(parts, unused + 1);
      },
      {.donate_args = {1}});
  const Array given = cut(8), small = numbers({3});
  const std::vector<Array> parts{given, given + 1, given + 2, cut(16)};
  const sa::Explanation e = sa::explain(f, parts, small);
  REQUIRE(e.transfers().size() == 4);
  const std::string text = e.summary(), all = e.to_string();
  CHECK(text.find("values\n") == std::string::npos);
  CHECK(text.find("\ntransfers\n") != std::string::npos);
  CHECK(text.substr(0, text.find('\n')) == all.substr(0, all.find('\n')));
  CHECK(text.find("   3 x " + e.transfers()[0].kind) != std::string::npos);
  CHECK(text.find("\n        " + e.transfers()[3].kind) != std::string::npos);
  CHECK(text.find("donations: 1 of 1 reused\n") != std::string::npos);
  CHECK(text.substr(text.find("largest")) == all.substr(all.find("largest")));
}

TEST_CASE("promises: the picture of an array is that of its sharding, in jit once a compilation") {
  const Array x = sa::device_put(numbers({8, 2}), eight(P("x")));
  const std::string want = sa::render_sharding({8, 2}, x.sharding());
  Printed outside;
  sa::visualize_array_sharding(x, {.use_color = false});
  CHECK(outside.text() == want);
  const auto f = sa::jit([](const Array& v) {
    sa::visualize_array_sharding(v * 2, {.use_color = false});
    return v * 2;
  });
  Printed inside;
  for (int k = 0; k < 3; k++) f(x);
  CHECK(inside.text() == want);
}

}  // namespace promises_arrays_test

// Described machines: explain() of programs on them, compared with numbers by hand; and arrays without values.
#include "shardarray/machine.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>

#include "base/duration_text.h"
#include "process_helpers.h"
#include "shardarray/shardarray.h"

namespace machine_test {

namespace sa = shardarray;
using sa::Array;
using sa::P;
using sa::testing::thrown;

namespace {

/// Two nodes of four, and rates that are easy to divide by.
sa::Machine two_nodes() {
  return {.name = "two-nodes",
          .kind = "a device",
          .device_count = 8,
          .memory = 1e9,
          .memory_bandwidth = 1e9,
          .flops = {{"float32", 1e9}, {"bfloat16", 4e9}},
          .links = {{"near", 4, 1e6, 1e-3}, {"far", 8, 1e5, 1e-2}},
          .source = "a test"};
}
const double near_start = 1e-3, near_byte = 1e-6, far_start = 1e-2, far_byte = 1e-5;

sa::Mesh mesh_of(const sa::Machine& m, const sa::Shape& shape, const std::vector<std::string>& names) {
  return sa::Mesh({shape, m.devices()}, names);
}
Array floats(const sa::Mesh& mesh, const sa::Shape& shape, const P& spec) {
  return sa::shape_dtype_struct(shape, sa::float32, sa::NamedSharding(mesh, spec));
}
doctest::Approx about(double x) { return doctest::Approx(x).epsilon(1e-3); }

}  // namespace

TEST_CASE("machine: a collective goes level by level, the far links carry the least") {
  const sa::Machine m = two_nodes();
  const sa::Mesh all = mesh_of(m, {8}, {"x"}), nodes = mesh_of(m, {2, 4}, {"node", "x"});
  const auto seconds = [](const sa::Mesh& mesh, const auto& f, const P& out, const char* kind) {
    const P rows = mesh.axis_names().size() == 1 ? P("x") : P(sa::axes("node", "x"));
    const auto e = sa::explain(sa::shard_map(f, {.mesh = mesh, .in_specs = rows, .out_specs = out}),
                               floats(mesh, {8, 1000}, rows));
    REQUIRE(e.transfers().size() == 1);
    CHECK(e.transfers()[0].kind == kind);
    CHECK(e.transfer_seconds == e.transfers()[0].seconds);
    return e.transfer_seconds;
  };
  // 4,000 bytes on each of 8. Parts of 500 go to the other node, then parts of 1,000 to three neighbours.
  const double scatter = far_start + 500 * far_byte + 2 * near_start + 3 * 1000 * near_byte;
  const auto sum = [](const Array& v) { return sa::psum(v, "x"); };
  CHECK(seconds(all, sum, P(), "all_reduce") == about(2 * scatter));
  CHECK(seconds(
            all, [](const Array& v) { return sa::psum_scatter(v, "x", {.axis = 1, .tiled = true}); },
            P(sa::none, "x"), "reduce_scatter") == about(scatter));
  CHECK(seconds(
            all, [](const Array& v) { return sa::all_gather(v, "x", {.tiled = true}); }, P(), "all_gather") ==
        about(far_start + 4000 * far_byte + 2 * near_start + 3 * 8000 * near_byte));
  CHECK(seconds(
            all,
            [](const Array& v) {
              return sa::all_to_all(v, "x", {.split_axis = 1, .concat_axis = 0, .tiled = true});
            },
            P(sa::none, "x"),
            "all_to_all") == about(near_start + 3 * 500 * near_byte + far_start + 4 * 500 * far_byte));
  CHECK(seconds(
            all,
            [](const Array& v) {
              return sa::ppermute(v, "x", {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 0}});
            },
            P("x"), "permute") == about(far_start + 4000 * far_byte));
  // Within a node: parts of 1,000 to three neighbours, and back.
  CHECK(seconds(nodes, sum, P("node"), "all_reduce") == about(2 * (2 * near_start + 3 * 1000 * near_byte)));
}

TEST_CASE("machine: steps take what their arithmetic or their memory takes, loops as often as they run") {
  const sa::Machine m = two_nodes();
  const sa::Mesh mesh = mesh_of(m, {8}, {"x"});
  const Array x = floats(mesh, {8, 1000, 100}, P("x")), w = floats(mesh, {100, 100}, P());
  const auto compute = [](const auto& f, const auto&... args) {
    return sa::explain(f, args...).compute_seconds;
  };
  const auto loop = [](const Array& v) { return v * 2 + 1; };
  CHECK(compute(loop, x) == about(2 * 400'000 / 1e9));
  const auto product = [](const Array& v, const Array& b) { return sa::matmul(v, b); };
  CHECK(compute(product, x, w) == about(2.0 * 1000 * 100 * 100 / 1e9));
  const auto bf16 = [](const Array& a) {
    return sa::shape_dtype_struct(a.shape(), sa::bfloat16, a.sharding());
  };
  CHECK(compute(product, bf16(x), bf16(w)) < compute(product, x, w) / 3);
  sa::Machine thin = m;
  thin.name = "two-nodes-of-thin-products";
  thin.product_padding = {8, 16, 32};
  CHECK(sa::explain(product, x, w).on(thin).compute_seconds == about(2.0 * 1008 * 116 * 132 / 1e9));
  const auto mean = [](const Array& v) {  // of which each device has a part
    return v - sa::mean(v, 0, {.keepdims = true});
  };
  const auto once = sa::explain(mean, x);
  const auto often = sa::explain(
      [&](const Array& v) {
        return sa::fori_loop(
            0, 10, [&](const Array&, const Array& c) { return mean(c); }, v);
      },
      x);
  CHECK(once.transfer_seconds > 0);
  CHECK(often.transfer_seconds == about(10 * once.transfer_seconds));
  CHECK(often.compute_seconds == doctest::Approx(10 * once.compute_seconds).epsilon(0.2));
}

TEST_CASE("machine: of a tile what is touched counts, of a convolution its arithmetic") {
  const sa::Mesh mesh = mesh_of(two_nodes(), {8}, {"x"});
  const auto compute = [](const auto& f, const auto&... args) {
    return sa::explain(f, args...).compute_seconds;
  };
  const Array table = floats(mesh, {1'000'000, 8}, P(sa::none, "x"));
  CHECK(compute([](const Array& t) { return t[sa::slice(10)] * 2; }, table) < 1e-6);  // of 4 MB a device
  CHECK(compute([](const Array& t) { return sa::take(t, sa::array({3, 1, 4}), 0); }, table) < 1e-6);
  const Array images = floats(mesh, {8, 16, 32, 32}, P("x")), kernel = floats(mesh, {16, 16, 3, 3}, P());
  const double products = 16.0 * 30 * 30 * 16 * 9;  // of one image
  CHECK(compute([](const Array& x, const Array& w) { return sa::conv(x, w); }, images, kernel) >=
        2 * products / 1e9);
}

TEST_CASE("machine: every group of a transfer counts, and devices in another order") {
  sa::Machine m = two_nodes();
  m.name = "three-nodes", m.device_count = 24, m.links = {{"near", 8, 1e6, 1e-3}, {"far", 24, 1e5, 1e-2}};
  const sa::Mesh mesh = mesh_of(m, {8, 3}, {"a", "b"});  // devices 0, 1, 2 are near, 6, 7, 8 are not
  const auto rolled = sa::shard_map(
      [](const Array& v) {
        return sa::ppermute(v, "b", {{0, 1}, {1, 2}, {2, 0}});
      },
      {.mesh = mesh, .in_specs = P("b"), .out_specs = P("b")});
  CHECK(sa::explain(rolled, floats(mesh, {3, 1000}, P("b"))).transfer_seconds ==
        about(far_start + 4000 * far_byte));

  std::vector<sa::Device> reversed = two_nodes().devices();
  std::reverse(reversed.begin(), reversed.end());
  const sa::Mesh there = mesh_of(two_nodes(), {8}, {"x"}), back({{8}, reversed}, {"x"});
  const auto e =
      sa::explain([&](const Array& v) { return sa::device_put(v * 2, sa::NamedSharding(back, P("x"))); },
                  floats(there, {8, 1000}, P("x")));
  CHECK(e.transfer_seconds == about(far_start + 4000 * far_byte));
}

TEST_CASE("machine: explain says how long a call takes there, and whether it fits") {
  const sa::Machine m = two_nodes();
  const sa::Mesh mesh = mesh_of(m, {8}, {"x"});
  const auto f = [](const Array& v) { return sa::sum(v * v, 0); };
  const auto e = sa::explain(f, floats(mesh, {8, 1000}, P("x")));
  CHECK(e.machine == "two-nodes");
  CHECK(e.memory_per_device == 1'000'000'000);
  const std::string text = e.to_string();
  CHECK_MESSAGE(text.find("on two-nodes: ") != text.npos, text);
  CHECK_MESSAGE(text.find(" of transfers), fits into 1000.0 MB of memory\n") != text.npos, text);
  const auto large = sa::explain(f, floats(mesh, {8, 1'000'000'000}, P("x"))).to_string();
  CHECK_MESSAGE(large.find(" does not fit into 1000.0 MB of memory\n") != large.npos, large);
  const auto here = sa::explain(f, sa::ones({8, 1000}));
  CHECK(here.machine.empty());
  CHECK(here.to_string().find("\non ") == std::string::npos);
}

TEST_CASE("machine: arrays without values are explained as those with values are") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  const auto step = sa::jit(
      [](const Array& w, const Array& rows) {
        return w - 0.1f * sa::grad([&](const Array& v) {
                     return sa::mean(sa::square(sa::tanh(sa::matmul(rows, v))));
                   })(w);
      },
      {.donate_args = {0}});
  for (const P& of_w : {P(), P("x"), P(sa::none, "y"), P("y", "x")})
    for (const P& of_x : {P("x"), P("x", "y"), P(sa::none, "x"), P()}) {
      const sa::NamedSharding sw(mesh, of_w), sx(mesh, of_x);
      const auto text = [&](const auto& made) {
        return sa::explain(step, made(sa::Shape{24, 16}, sw), made(sa::Shape{40, 24}, sx)).to_string();
      };
      CHECK(text([](const sa::Shape& s, const sa::Sharding& on) {
              return sa::shape_dtype_struct(s, sa::float32, on);
            }) ==
            text([](const sa::Shape& s, const sa::Sharding& on) { return sa::device_put(sa::ones(s), on); }));
    }
}

TEST_CASE("machine: arrays without values are put, and tell where they would lie") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const sa::NamedSharding rows(mesh, P("x"));
  const auto tree = sa::eval_shape([](const Array& v) { return std::pair(v * 2, v[0]); },
                                   sa::shape_dtype_struct({1'000'000, 1'000'000}));
  const auto put = sa::filter_shard(tree, rows);
  for (const Array& a : {put.first, sa::device_put(tree.second, rows)}) {
    CHECK(a.sharding() == rows);
    CHECK(a.type_string().find("@x") != std::string::npos);
    CHECK(a.committed());
    CHECK(a.devices() == sa::devices());
    CHECK_FALSE(a.is_fully_replicated());
    CHECK(thrown([&] { (void)sa::jit([](const Array& v) { return v + 1; })(a); }).find("has no values") !=
          std::string::npos);
  }
  // What is read into such a tree lies there.
  const sa::testing::TemporaryFolder folder;
  const Array x = sa::arange(16.0f).reshape({8, 2});
  sa::save(folder.file("x"), std::tuple(x));
  const auto [read] =
      sa::load(folder.file("x"), std::tuple(sa::shape_dtype_struct({8, 2}, sa::float32, rows)));
  CHECK(read.sharding() == rows);
  CHECK(read.to_vector<float>() == x.to_vector<float>());
  CHECK(thrown([&] { (void)tree.first.sharding(); }).find("sharding: ") == 0);  // nobody has said
  CHECK(thrown([&] { (void)sa::shape_dtype_struct({}, sa::float32, rows); }).find("shape_dtype_struct: ") ==
        0);
}

TEST_CASE("machine: descriptions, as JSON and from files") {
  for (const std::string& name : sa::machine_names()) {
    const sa::Machine m = sa::machine(name);
    CHECK(m.name == name);
    CHECK_FALSE(m.source.empty());
    CHECK(sa::machine_from_json(sa::machine_json(m)) == m);
    CHECK(m.devices().size() == static_cast<std::size_t>(m.device_count));
  }
  sa::Machine padded = two_nodes();
  padded.product_padding = {1, 2, 3.5};
  CHECK(sa::machine_from_json(sa::machine_json(padded)) == padded);
  const sa::testing::TemporaryFolder folder;
  const std::string path = folder.file("mine.json");
  std::ofstream(path) << sa::machine_json(two_nodes());
  CHECK(sa::machine(path) == two_nodes());
  CHECK(thrown([&] { (void)sa::machine(folder.file("none.json")); }).find(" cannot be read. ") !=
        std::string::npos);
  CHECK(thrown([] {
          (void)sa::machine("abacus");
        }).find("machine: 'abacus' is not known. There are h200, ") == 0);
}

TEST_CASE("machine: what is refused") {
  const auto with = [](const auto& change) {
    sa::Machine m = two_nodes();
    m.name = "bad";
    change(m);
    return thrown([&] { (void)m.devices(); });
  };
  using M = sa::Machine;
  CHECK(with([](M& m) { m.name = ""; }).find("machine: '' is no name") == 0);
  CHECK(with([](M& m) { m.name = "a b"; }).find("machine: 'a b' is no name") == 0);
  CHECK(with([](M& m) { m.name = "cpu"; }).find("machine: 'cpu' is the name of a platform that is here") ==
        0);
  CHECK(with([](M& m) { m.name = "gpu"; }).find("machine: 'gpu' is the name of a platform that is here") ==
        0);
  CHECK(with([](M& m) { m.device_count = 0; }).find("machine: 'bad' has 0 devices") == 0);
  CHECK(with([](M& m) { m.memory = -1; }).find("machine: 'bad' has a memory of -1") == 0);
  CHECK(with([](M& m) { m.memory_bandwidth = 0; }).find("machine: 'bad' has a memory_bandwidth of 0") == 0);
  CHECK(with([](M& m) { m.flops.erase("float32"); }).find("machine: 'bad' has no flops of float32") == 0);
  CHECK(with([](M& m) {
          m.flops["bf16"] = 1;
        }).find("machine: 'bad' has flops of 'bf16', which is no dtype") == 0);
  CHECK(with([](M& m) { m.product_padding[1] = -1; }).find("machine: 'bad' has a product_padding of -1; ") ==
        0);
  CHECK(with([](M& m) { m.memory = 1e25; }).find("machine: 'bad' has a memory of 1e+25") == 0);
  CHECK(with([](M& m) { m.flops["int8"] = 0; }).find("machine: 'bad' has flops of int8 of 0") == 0);
  CHECK(with([](M& m) {
          m.links[0].bandwidth = 0;
        }).find("machine: 'bad' has links 'near' with a bandwidth") == 0);
  CHECK(with([](M& m) { m.links[0].latency = -1; }).find("machine: 'bad' has links 'near' with a latency") ==
        0);
  CHECK(with([](M& m) { m.links[0].devices = 3; }).find("machine: 'bad' has links 'far' between 8 devices") ==
        0);
  CHECK(with([](M& m) { m.device_count = 16; }).find("machine: 'bad' has 16 devices and links between 8") ==
        0);
  (void)two_nodes().devices();
  CHECK(with([](M& m) {
          m.name = "two-nodes", m.memory = 2e9;
        }).find("machine: there is a machine 'two-nodes' with other numbers already") == 0);

  const auto json = [](std::string from, std::string to) {
    std::string text = sa::machine_json(two_nodes());
    text.replace(text.find(from), from.size(), to);
    return thrown([&] { (void)sa::machine_from_json(text); });
  };
  CHECK(json("{", "").find("machine: the text is not as it has to be: ") == 0);
  CHECK(json("\"memory\"", "\"memories\"").find("machine: the text has 'memories'. Its members are name, ") ==
        0);
  CHECK(json("\"source\": \"a test\"", "\"name\": \"b\"")
            .find("machine: the text lacks 'source'. Its members") == 0);
  CHECK(json("\"latency\": 0.001", "\"latency\": \"soon\"").find("machine: the text is not") == 0);
  CHECK(json("\"device_count\": 8", "\"device_count\": 8.5")
            .find("machine: the text has 8.5 devices somewhere") == 0);
  CHECK(json("\"device_count\": 8", "\"device_count\": 4294967304")
            .find("machine: the text has 4294967304 devices") == 0);
  CHECK(thrown([] { (void)sa::machine_from_json("[1]"); }).find("machine: the text lacks an object. ") == 0);

  // Values cannot go there, and nothing runs there.
  const sa::Mesh mesh = mesh_of(two_nodes(), {8}, {"x"});
  const sa::NamedSharding rows(mesh, P("x"));
  const std::string nothing = "machine: two-nodes is a description, whose devices hold no values. ";
  CHECK(thrown([&] { sa::device_put(sa::ones({8}), rows).block_until_ready(); }).find(nothing) == 0);
  CHECK(thrown([&] {
          const sa::default_device there(two_nodes().devices()[0]);
          (void)(sa::ones({8}) * 2).to_vector<float>();
        }).find(nothing) == 0);
}

TEST_CASE("machine: products of fast dtypes are repeated where those of slow ones are shared") {
  const sa::Machine m{.name = "fast-halves",
                      .kind = "a device",
                      .device_count = 8,
                      .memory = 1e12,
                      .memory_bandwidth = 1e12,
                      .flops = {{"float32", 1e10}, {"bfloat16", 1e12}, {"float64", 1e10}, {"tf32", 1e12}},
                      .links = {{"near", 8, 1e9, 0}},
                      .source = "a test"};
  const sa::Mesh mesh = mesh_of(m, {8}, {"x"});
  const auto whole = sa::NamedSharding(mesh, P());
  const auto f = [&](const Array& a, const Array& b) { return sa::reshard(sa::matmul(a, b), whole); };
  // The result is 16 times the first operand: 0.1 bytes an operation of float32 say that it moves, 0.001 that the operand does.
  const auto received = [&](sa::DType t) {
    const auto e = sa::explain(f, sa::shape_dtype_struct({1024, 64}, t, sa::NamedSharding(mesh, P("x"))),
                               sa::shape_dtype_struct({64, 1024}, t, whole));
    return e.received_bytes_per_device();
  };
  const std::int64_t elements_of_result = 1024 * 1024 * 7 / 8, of_operand = 1024 * 64 * 7 / 8;
  CHECK(received(sa::float32) == elements_of_result * 4);
  CHECK(received(sa::float64) == elements_of_result * 8);
  CHECK(received(sa::bfloat16) == of_operand * 2);
  CHECK(received(sa::float16) == elements_of_result * 2);  // nobody told its rate: float32's
  const sa::tf32 mode(true);
  CHECK(received(sa::float32) == of_operand * 4);
}

TEST_CASE("machine: policy strict says how long what it refuses would take, as explain does") {
  const sa::Machine m = two_nodes();
  const sa::Mesh mesh = mesh_of(m, {8}, {"x"});
  const Array x = floats(mesh, {64, 1024}, P("x")), w = floats(mesh, {1024, 16}, P("x"));
  const auto f = [](const Array& a, const Array& b) { return sa::tanh(sa::matmul(a, b)); };
  const auto e = sa::explain(f, x, w);
  REQUIRE(!e.transfers().empty());
  const std::string price = fmt::format("{} bytes per device ({})", e.transfers()[0].bytes_per_device,
                                        sa::duration_text(e.transfers()[0].seconds));
  const std::string said = thrown([&] {
    const sa::policy::strict mode;
    (void)sa::explain(f, x, w);
  });
  CHECK_MESSAGE(said.find(price) != std::string::npos, said);
  CHECK_MESSAGE(said.find("s by all_") != std::string::npos, said);  // other ways, with theirs
}

}  // namespace machine_test

// tune(): its choices compared with all possible ones; times by a machine's rates; trees placed by paths.
#include "shardarray/tune.h"

#include <doctest/doctest.h>

#include "process_helpers.h"
#include "scale.h"
#include "shardarray/shardarray.h"

namespace tune_test {

namespace sa = shardarray;
using sa::Array;
using sa::P;
using sa::testing::thrown;

namespace {

/// Eight devices with rates that make moving a byte cost as much as 1,000 operations.
sa::Machine machine() {
  return {.name = "tune-eight",
          .kind = "a device",
          .device_count = 8,
          .memory = 1e9,
          .memory_bandwidth = 1e11,
          .flops = {{"float32", 1e12}},
          .links = {{"near", 8, 1e9, 1e-6}},
          .source = "a test"};
}
sa::Mesh mesh(const sa::Shape& shape, const std::vector<std::string>& names) {
  return sa::Mesh(sa::DeviceGrid{shape, machine().devices()}, names);
}
Array floats(const sa::Shape& shape) { return sa::shape_dtype_struct(shape, sa::float32); }

/// Every way to cut a matrix by the axes of a mesh, in equal parts.
std::vector<sa::NamedSharding> all_cuts(const sa::Mesh& m, const sa::Shape& shape) {
  std::vector<sa::NamedSharding> all;
  const auto axes = m.axis_names();
  const int ways = axes.size() == 1 ? 3 : 9;
  for (int k = 0; k < ways; k++) {
    std::vector<sa::SpecEntry> dims(2, sa::none);
    std::int64_t parts[2] = {1, 1};
    for (std::size_t a = 0, digit = static_cast<std::size_t>(k); a < axes.size(); a++, digit /= 3)
      if (digit % 3 > 0) {
        sa::SpecEntry& e = dims[digit % 3 - 1];
        e.names.push_back(axes[a]);
        parts[digit % 3 - 1] *= m.axis_size(axes[a]);
      }
    for (sa::SpecEntry& e : dims) e.tuple = e.names.size() > 1;
    if (shape[0] % parts[0] == 0 && shape[1] % parts[1] == 0) all.emplace_back(m, P(dims));
  }
  return all;
}

/// The least seconds of all choices for these matrices.
template <class F> double least(const F& f, const sa::Mesh& m, const std::vector<sa::Shape>& shapes) {
  std::vector<std::vector<sa::NamedSharding>> choices{{}};
  for (const sa::Shape& s : shapes) {
    std::vector<std::vector<sa::NamedSharding>> longer;
    for (const auto& c : choices)
      for (const sa::NamedSharding& cut : all_cuts(m, s)) {
        longer.push_back(c);
        longer.back().push_back(cut);
      }
    choices = std::move(longer);
  }
  double best = HUGE_VAL;
  for (const auto& c : choices) {
    std::vector<Array> args;
    for (std::size_t k = 0; k < c.size(); k++)
      args.push_back(sa::shape_dtype_struct(shapes[k], sa::float32, c[k]));
    const sa::Explanation e = sa::explain(f, args);
    best = std::min(best, e.compute_seconds + e.transfer_seconds);
  }
  return best;
}

const auto two_layers =
    sa::jit([](const std::vector<Array>& a) { return sa::matmul(sa::relu(sa::matmul(a[0], a[1])), a[2]); });
const auto gradient = sa::jit([](const std::vector<Array>& a) {
  return sa::grad([&](const std::vector<Array>& w) {
    return sa::sum(sa::square(sa::matmul(sa::tanh(sa::matmul(a[0], w[0])), w[1])));
  })(std::vector{a[1], a[2]});
});

}  // namespace

TEST_CASE("tune: finds what is best of all choices") {
  const sa::Mesh line = mesh({8}, {"x"}), grid = mesh({4, 2}, {"x", "y"});
  const std::vector<std::vector<sa::Shape>> problems{
      {{64, 32}, {32, 128}, {128, 32}},       // few rows: weights are cut
      {{4096, 32}, {32, 128}, {128, 32}},     // many: rows are
      {{256, 256}, {256, 256}, {256, 256}}};  // of one size: which dimension is meant?
  sa::testing::LeftOut left_out(4);
  const auto finds = [&](const auto& f, const sa::Mesh& m) {
    for (const std::vector<sa::Shape>& shapes : problems) {
      if (left_out()) continue;
      std::vector<Array> args;
      for (const sa::Shape& each : shapes) args.push_back(floats(each));
      const sa::Tuned t = sa::tune(f, sa::TuneOptions{.mesh = m, .seconds = 600}, args);
      REQUIRE_FALSE(t.choices().empty());
      CHECK_MESSAGE(t.choices()[0].predicted <= 1.05 * least(f, m, shapes), t);
      CHECK(t.choices()[0].measured == 0);  // there is nothing to run
      for (std::size_t k = 1; k < t.choices().size(); k++)
        CHECK(t.choices()[k - 1].predicted <= t.choices()[k].predicted);
    }
  };
  finds(two_layers, line);
  finds(gradient, line);
  finds(two_layers, grid);
}

TEST_CASE("tune: what needs too much memory is left out") {
  const sa::Mesh line = mesh({8}, {"x"});
  const auto f = [](const Array& x, const Array& w) { return sa::matmul(x, w); };
  // x is 1 MB, w 16 MB: whole weights are fastest as long as they may be whole.
  const Array x = floats({2048, 128}), w = floats({128, 32768});
  const auto tuned = [&](std::int64_t bytes) {
    return sa::tune(f, sa::TuneOptions{.mesh = line, .memory_per_device = bytes}, x, w);
  };
  const sa::Tuned free = tuned(0), tight = tuned(40 << 20);
  CHECK(free.choices()[0].peak_bytes_per_device > 0);
  for (const sa::TunedChoice& c : tight.choices()) CHECK(c.peak_bytes_per_device <= 40 << 20);
  CHECK(tight.choices()[0].predicted >= free.choices()[0].predicted);
  CHECK(thrown([&] { (void)tuned(1000); }).find("tune: of ") == 0);
  CHECK(thrown([&] {
          (void)tuned(1000);
        }).find(" choices of shardings none needs 1000 B a device or less; the least is ") !=
        std::string::npos);
}

TEST_CASE("tune: the best by prediction are run, and nothing is taken away") {
  const sa::Mesh m = sa::make_mesh({{"x", 8}});
  const Array x = sa::device_put(sa::random::normal(sa::random::key(1), {64, 32}),
                                 sa::NamedSharding(m, P("x"))),
              w = sa::random::normal(sa::random::key(2), {32, 16});
  const std::vector<float> before = x.to_vector<float>();
  const auto step = sa::jit([](const Array& a, const Array& b) { return std::pair(sa::matmul(a, b), b * 2); },
                            {.donate_args = {0, 1}});
  const sa::Tuned t = sa::tune(step, sa::TuneOptions{.mesh = m, .measured = 3, .machine = machine()}, x, w);
  CHECK(x.to_vector<float>() == before);
  CHECK_FALSE(w.is_deleted());
  REQUIRE(t.choices().size() >= 3);
  for (std::size_t k = 0; k < t.choices().size(); k++) CHECK((t.choices()[k].measured > 0) == (k < 3));
  CHECK(t.choices()[0].measured <= t.choices()[1].measured);
  CHECK(t.choices()[1].measured <= t.choices()[2].measured);
  CHECK(t.regret() >= 0);
  // What is found can be put, and computes the same.
  const auto [px, pw] = sa::device_put(std::tuple(x, w), t.shardings());
  CHECK(px.sharding() == sa::Sharding(t.choices()[0].shardings[0]));
  CHECK(pw.sharding() == sa::Sharding(t.choices()[0].shardings[1]));
  CHECK(px.to_vector<float>() == before);
  const std::string report = t.report(), code = t.code();
  CHECK_MESSAGE(
      report.find(" choices of shardings tried, Mesh('x': 8), times of tune-eight\n") != report.npos, report);
  CHECK_MESSAGE(report.find("% longer than the fastest measured\n") != report.npos, report);
  CHECK_MESSAGE(report.find("\n  [0] f32[64,32]: PartitionSpec(") != report.npos, report);
  CHECK_MESSAGE(
      code.find(
          "const Mesh mesh = make_mesh({{\"x\", 8}});\nconst std::map<std::string, Sharding> shardings{\n"
          "    {\"[0]\", NamedSharding(mesh, P(") == 0,
      code);
}

TEST_CASE("tune: models are trees, and layers of one shape change together") {
  const sa::Mesh m = mesh({8}, {"x"});
  const auto model = sa::eval_shape([](const Array& k) { return sa::nn::MLP<>::init(64, 64, 64, 6, k); },
                                    sa::random::key(0));
  const auto f = [](const sa::nn::MLP<>& net, const Array& batch) { return sa::vmap(net)(batch); };
  const sa::Tuned t = sa::tune(f, sa::TuneOptions{.mesh = m, .seconds = 600}, model, floats({8192, 64}));
  // A large batch is cut, and the weights are whole: nothing moves.
  CHECK(t.choices()[0].received_bytes_per_device == 0);
  CHECK(t.shardings().at("[1]") == sa::Sharding(sa::NamedSharding(m, P("x"))));
  CHECK(t.shardings().contains("[0].layers[3].weight"));
  CHECK(t.choices()[0].results == std::vector<std::string>{"f32[8192@x,64]"});
  CHECK(t.report().ends_with("\nand its results\n  f32[8192@x,64]\n"));
}

TEST_CASE("tune: what is refused") {
  const sa::Mesh m = mesh({8}, {"x"});
  const auto f = [](const Array& x) { return x * 2; };
  const auto with = [&](const sa::TuneOptions& o) {
    return thrown([&] { (void)sa::tune(f, o, floats({8, 8})); });
  };
  CHECK(with({.mesh = m, .memory_per_device = -1})
            .find("tune: memory_per_device is -1, measured 4, seconds 20. ") == 0);
  CHECK(with({.mesh = m, .measured = -1}).find("tune: memory_per_device is 0, measured -1") == 0);
  CHECK(with({.mesh = m, .seconds = 0}).find("seconds 0. The first two are 0 or more, seconds is above 0.") !=
        std::string::npos);
  CHECK(thrown([&] {
          (void)sa::tune([](int k) { return sa::ones({k}); }, sa::TuneOptions{.mesh = m}, 3);
        }).find("tune: the arguments have no arrays. ") == 0);
  // Time is up: what was tried until then counts.
  const sa::Tuned t = sa::tune(f, sa::TuneOptions{.mesh = m, .seconds = 1e-9}, floats({8, 8}));
  CHECK(t.tried() == 1);
  CHECK(t.report().find("1 choice of shardings tried until time was up") == 0);
}

TEST_CASE("tune: where nothing can be run, nothing is; what does not compile is left out") {
  const sa::Mesh line = mesh({8}, {"x"});
  const auto f = [](const Array& x, const Array& w) { return sa::matmul(x, w); };
  // Values, for a machine that is described.
  const sa::Tuned there = sa::tune(f, sa::TuneOptions{.mesh = line}, sa::ones({16, 16}), sa::ones({16, 16}));
  CHECK(there.choices()[0].measured == 0);
  CHECK(there.regret() == 0);
  {
    const sa::policy::strict here;
    const sa::Tuned strict = sa::tune(f, sa::TuneOptions{.mesh = line}, floats({16, 16}), floats({16, 16}));
    CHECK(strict.choices()[0].received_bytes_per_device == 0);
    for (const sa::TunedChoice& c : strict.choices()) CHECK(c.predicted > 0);
  }
  const sa::Tuned empty =
      sa::tune([](const Array& x) { return x * 2; }, sa::TuneOptions{.mesh = line}, floats({0, 7}));
  CHECK(empty.choices()[0].shardings[0] == sa::NamedSharding(line, P()));
  const sa::Mesh one = sa::make_mesh({{"x", 1}});
  CHECK(sa::tune(f, sa::TuneOptions{.mesh = one, .measured = 0, .machine = machine()}, sa::ones({8, 8}),
                 sa::ones({8, 8}))
            .tried() == 1);
  sa::Machine bad = machine();
  bad.flops.clear();
  CHECK(thrown([&] {
          (void)sa::tune(f, sa::TuneOptions{.mesh = line, .machine = bad}, floats({8, 8}), floats({8, 8}));
        }).find("machine: 'tune-eight' has no flops of float32") == 0);
}

TEST_CASE("tune: arrays of a tree are put by their paths") {
  const sa::Mesh m = sa::make_mesh({{"x", 8}});
  const sa::NamedSharding rows(m, P("x")), whole(m, P());
  const std::vector<Array> tree{sa::ones({8, 2}), sa::ones({8}), sa::ones({3})};
  for (const bool constrained : {false, true}) {
    const std::map<std::string, sa::Sharding> to{{"[0][0]", rows}, {"[1]", whole}};
    const std::tuple given(tree, sa::ones({5}));
    const auto [put, other] = constrained ? sa::filter_shard(given, to) : sa::device_put(given, to);
    CHECK(put[0].sharding() == sa::Sharding(rows));
    CHECK(put[1].sharding() == tree[1].sharding());
    CHECK(other.sharding() == sa::Sharding(whole));
  }
  const std::map<std::string, sa::Sharding> unknown{{"[7]", rows}};
  CHECK(thrown([&] {
          (void)sa::device_put(tree, unknown);
        }).find("device_put: there is a sharding for `[7]`, and the tree has no array there. ") == 0);
  CHECK(thrown([&] {
          (void)sa::filter_shard(tree, unknown);
        }).find("filter_shard: there is a sharding for `[7]`") == 0);
}

TEST_CASE("explain: a plan with the times of a machine's numbers") {
  const sa::Mesh m = sa::make_mesh({{"x", 8}});
  const Array x = sa::device_put(sa::ones({8, 1000}), sa::NamedSharding(m, P("x")));
  const sa::Explanation plan = sa::explain([](const Array& v) { return sa::sum(v * v, 0); }, x);
  CHECK(plan.machine.empty());
  sa::Machine eight = machine();
  const sa::Explanation timed = plan.on(eight);
  CHECK(timed.machine == "tune-eight");
  CHECK(timed.transfers().size() == plan.transfers().size());
  double sum = 0;
  for (const sa::TransferInfo& t : timed.transfers()) sum += t.seconds;
  CHECK(sum > 0);
  CHECK(timed.transfer_seconds == doctest::Approx(sum));
  eight.step_latency = 1e-3;  // and nothing else
  CHECK(plan.on(eight).compute_seconds - timed.compute_seconds ==
        doctest::Approx(1e-3 * static_cast<double>(plan.steps_per_device -
                                                   static_cast<std::int64_t>(plan.transfers().size())))
            .epsilon(1e-6));
  sa::Machine bad = machine();
  bad.links[0].devices = 0;
  CHECK(thrown([&] {
          (void)plan.on(bad);
        }).find("machine: 'tune-eight' has links 'near' between 0 devices") == 0);
  eight.device_count = 4, eight.links = {{"near", 4, 1e9, 1e-6}};
  CHECK(thrown([&] {
          (void)plan.on(eight);
        }).find("Explanation::on: the program runs on 8 devices, and 'tune-eight' has 4. ") == 0);
}

TEST_CASE("machine: the one that is here is measured once") {
  const sa::Mesh two = sa::make_mesh({{"x", 2}});
  const sa::Machine here = sa::this_machine(two.devices());
  CHECK(here.name == "here-cpu-2");
  CHECK(here.device_count == 2);
  CHECK(here == sa::this_machine(two.devices()));
  CHECK(sa::machine_from_json(sa::machine_json(here)) == here);  // its numbers make sense
  CHECK(here.flops.at("float32") > here.flops.at("float64"));
  const Array x = sa::device_put(sa::ones({1 << 20}), sa::NamedSharding(two, P("x")));
  const sa::Explanation e = sa::explain([](const Array& v) { return v + 1; }, x).on(here);
  CHECK(e.compute_seconds > 0);
  CHECK(thrown([] {
          (void)sa::this_machine(machine().devices());
        }).find("this_machine: 'tune-eight' is a description") == 0);
}

TEST_CASE("explain: what moves something names the next best way") {
  const sa::Mesh m = sa::make_mesh({{"x", 8}});
  const Array a = sa::device_put(sa::ones({16, 16}), sa::NamedSharding(m, P("x"))),
              b = sa::device_put(sa::ones({16, 16}), sa::NamedSharding(m, P(sa::none, "x")));
  const std::string text =
      sa::explain([](const Array& v, const Array& w) { return v * w; }, a, b).to_string();
  CHECK_MESSAGE(
      text.find(
          "mul %0 %2, moves 112 B by operand 1 as [{x}, {}]; next best 112 B by operand 0 as [{}, {x}]") !=
          text.npos,
      text);
  const sa::TransferInfo moved =
      sa::explain([](const Array& v, const Array& w) { return v * w; }, a, b).transfers().at(0);
  CHECK(moved.runner_up == "112 B by operand 0 as [{}, {x}]");
  CHECK(sa::explain([](const Array& v) { return v * 2; }, a).to_string().find("next best") ==
        std::string::npos);
  {  // Propagation decides, and the price of another way is told all the same.
    const sa::policy::follow here;
    const auto e = sa::explain([](const Array& v, const Array& w) { return v * w; }, a, b);
    CHECK(e.transfers().at(0).runner_up == "112 B by operand 0 as [{}, {x}]");
  }
  // Of what is broadcast the array itself moves.
  const Array rows = sa::device_put(sa::ones({64, 16}), sa::NamedSharding(m, P("x"))),
              bias = sa::device_put(sa::ones({16}), sa::NamedSharding(m, P("x")));
  const std::string sum =
      sa::explain([](const Array& v, const Array& c) { return v + c; }, rows, bias).to_string();
  CHECK_MESSAGE(sum.find("moves 56 B by operand 1 as [{}]; next best ") != sum.npos, sum);
  // Partial sums count as what it takes to combine them.
  const std::string product =
      sa::explain(sa::jit([](const Array& v, const Array& w) { return sa::matmul(v, w); },
                          {.out_shardings = sa::NamedSharding(m, P())}),
                  b, a)
          .to_string();
  CHECK_MESSAGE(product.find("moves 1792 B by sums over {x}; next best ") != product.npos, product);
}

TEST_CASE("explain: results, and the largest pieces of memory") {
  const sa::Mesh m = sa::make_mesh({{"x", 8}});
  const sa::NamedSharding rows(m, P("x"));
  const Array x = sa::device_put(sa::ones({64, 128}), rows),
              w = sa::device_put(sa::ones({128, 512}), sa::NamedSharding(m, P()));
  const auto f = sa::jit([](const Array& a, const Array& b) {
    const Array h = sa::matmul(a, b);
    return std::pair(sa::matmul(sa::relu(h), sa::transpose(b)), sa::sum(b));
  });
  const sa::Explanation e = sa::explain(f, x, w);
  CHECK(e.results() == std::vector<std::string>{"f32[64@x,128]", "f32[]"});
  REQUIRE(e.largest().size() >= 3);
  CHECK(e.largest()[0].what == "argument 1");
  CHECK(e.largest()[0].type == "f32[128,512]");
  CHECK(e.largest()[0].bytes_per_device == 128 * 512 * 4);
  CHECK(e.largest()[0].source.empty());
  CHECK(e.largest()[1].bytes_per_device == 64 / 8 * 512 * 4);  // h, or what relu makes of it
  CHECK(e.largest()[1].source.find("tune_test.cpp:") != std::string::npos);
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < e.largest().size(); k++) {
    sum += e.largest()[k].bytes_per_device;
    if (k > 0) CHECK(e.largest()[k - 1].bytes_per_device >= e.largest()[k].bytes_per_device);
  }
  CHECK(sum <= e.peak_bytes_per_device);
  CHECK(sum >= e.peak_bytes_per_device * 9 / 10);  // these are all; arenas have gaps
  CHECK(e.to_string().find(
            "largest pieces of memory, at the worst moment\n   262.1 KB  f32[128,512]     argument 1\n") !=
        std::string::npos);

  // What is donated and reused counts once.
  const auto add = sa::jit([](const Array& a) { return a + 1; }, {.donate_args = {0}});
  const sa::Explanation reused = sa::explain(add, x);
  REQUIRE(reused.largest().size() == 1);
  CHECK(reused.largest()[0].what == "argument 0");
  // Of many the ten largest; what a loop's program needs is one piece.
  std::vector<Array> many;
  for (int k = 1; k <= 20; k++) many.push_back(sa::ones({64 * k}));
  const sa::Explanation ten = sa::explain([](const std::vector<Array>& a) { return a[0]; }, many);
  CHECK(ten.largest().size() <= 10);
  const auto scan = [](const Array& v) {
    return sa::fori_loop(
        0, 5, [](const Array&, const Array& c) { return sa::matmul(sa::matmul(c, sa::transpose(c)), c); }, v);
  };
  const sa::Explanation loop = sa::explain(scan, sa::ones({64, 64}));
  for (const sa::BufferInfo& b : loop.largest())
    if (b.what.find("temporary values of ") == 0) CHECK((b.type.empty() && b.copies == 1));
  CHECK(std::ranges::any_of(
      loop.largest(), [](const sa::BufferInfo& b) { return b.what.find("temporary values of ") == 0; }));
}

TEST_CASE("measure: a call's time beside its plan's, and nothing is taken away") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Array x = sa::device_put(sa::ones({256, 512}), sa::NamedSharding(mesh, sa::P("x"))),
              w = sa::device_put(sa::ones({512, 64}), sa::NamedSharding(mesh, sa::P()));
  const auto f = sa::jit([](const Array& a, const Array& b) { return sa::sum(sa::matmul(a, b), 0); },
                         {.donate = sa::Donate::all});
  const sa::Measurement m = sa::measure(f, x, w);
  CHECK_FALSE(x.is_deleted());
  CHECK(m.time.runs.size() == 15);
  CHECK(m.plan.transfers().size() == 1);
  CHECK(m.plan.machine == sa::this_machine().name);
  CHECK(m.ratio() == m.time.median() / (m.plan.compute_seconds + m.plan.transfer_seconds));
  CHECK(m.ratio() > 0);
  const std::string text = m.to_string();
  CAPTURE(text);
  CHECK(text.find(" of 15), predicted ") != std::string::npos);
  CHECK(text.find(" on " + m.plan.machine + ": ") != std::string::npos);
  CHECK(text.ends_with(" received per device"));
  CHECK(sa::measure([](const Array& a) { return a + 1; }, x).plan.transfers().empty());
}

}  // namespace tune_test

// Clocks and summaries.
#include <doctest/doctest.h>

#include <sstream>
#include <thread>

#include "messages.h"
#include "shardarray/shardarray.h"

namespace timing_test {

using namespace shardarray;
using namespace shardarray::testing;

TEST_CASE("timing: a timer waits for the tree that it is given") {
  Timer timer;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before = timer.seconds();
  CHECK(before >= 0.02);
  // What is recorded is computed, and what it takes counts.
  const Array x = arange(3.0);
  int calls = 0;
  const auto slow = jit([&calls](const Array& a) {
    debug::callback(
        [&calls](const HostValues&) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          calls++;
        },
        {a});
    return a + 1;
  });
  timer.restart();
  CHECK(timer.seconds() < before);
  CHECK(timer.seconds(std::pair(slow(x), 3)) >= 0.02);
  CHECK(calls == 1);
}

TEST_CASE("timing: time_it runs what it is told, and warms up before") {
  int calls = 0;
  const Timing t = time_it(
      [&] {
        calls++;
        std::this_thread::sleep_for(std::chrono::milliseconds(calls > 2 ? 2 : 40));
        return ones(3) + 1;
      },
      {.runs = 4, .warmup = 2});
  CHECK(calls == 6);
  CHECK(t.runs.size() == 4);
  CHECK(t.best() >= 0.002);
  CHECK(t.best() <= t.median());
  CHECK(time_it([] {}).runs.size() == 10);
  CHECK(Timing{{3, 1, 2}}.median() == 2);
  CHECK(Timing{{4, 1, 2, 3}}.median() == 2.5);
  CHECK(Timing{{3, 1, 2}}.best() == 1);
  std::ostringstream os;
  os << Timing{{1.5e-3, 1.2e-3}};
  CHECK(os.str() == "1.35 ms (best 1.2 ms of 2)");
  CHECK(to_string(Timing{{2e-9}}) == "2 ns (best 2 ns of 1)");
  CHECK(to_string(Timing{{12e-6, 2}}) == "1 s (best 12 us of 2)");
  CHECK(to_string(Timing{}) == "no runs");
  CHECK_SAYS(time_it([] {}, {.runs = 0}),
             "time_it: 0 runs and 1 warm-up. There is one run at least. Correct them.", Error);
  CHECK_THROWS_AS(static_cast<void>(time_it([] {}, {.warmup = -1})), Error);
}

namespace {
struct Layer {
  Array weight, bias;
  int size = 3;
};
struct Net {
  std::vector<Layer> layers;
  Array step;
};
}  // namespace

TEST_CASE("summary: paths, types, elements, bytes, and what a device has") {
  const Mesh mesh = make_mesh({{"x", 4}, {"y", 2}});
  Net net{{{device_put(zeros({64, 50}), NamedSharding(mesh, P("x", "y"))), Array()},
           {device_put(zeros({10, 3}, bfloat16), NamedSharding(mesh, P("x"))), zeros({7}, bool_)}},
          array({1, 2})};
  eval(net);
  net.layers[1].bias = ones(5) + net.layers[1].bias.sum();  // recorded
  CHECK(summary(net) ==
        "path              type            elements    bytes  on a device\n"
        "layers[0].weight  f32[64@x,50@y]     3,200  12.8 KB       1600 B\n"
        "layers[1].weight  bf16[10@x,3]          30     60 B         18 B\n"
        "layers[1].bias    f32[5]                 5     20 B\n"
        "step              i32[2]                 2      8 B          8 B\n"
        "all               4 arrays           3,237  12.9 KB       1626 B\n");
  CHECK(summary(ones(2)).find("\n      f32[2]") != std::string::npos);
  CHECK(summary(std::tuple(1, 2.5)) ==
        "path  type      elements  bytes  on a device\n"
        "all   0 arrays         0    0 B          0 B\n");
}

TEST_CASE("summary: it evaluates nothing, in traces too, and lists what was given away") {
  const Array x = ones({8}).block_until_ready();
  eval(jit([](const Array& a) { return a + 1; }, {.donate_args = {0}})(x));
  CHECK(x.is_deleted());
  CHECK(summary(std::pair(x, 1)).find("f32[8]") != std::string::npos);
  CHECK(summary(x).find("32 B          0 B\n") != std::string::npos);
  // What a device has of all: not the sum of what is most of each.
  std::vector<Array> apart;
  for (std::size_t k = 0; k < 3; k++)
    apart.push_back(device_put(ones(100 + static_cast<std::int64_t>(k)), devices()[k]).block_until_ready());
  CHECK(summary(apart).find("1212 B        408 B\n") != std::string::npos);
  std::string inside;
  eval(jit([&](const Array& a) {
    inside = summary(std::pair(a, a * 2));
    return a;
  })(ones(3)));
  CHECK(inside.find("2 arrays") != std::string::npos);
  // A value that no memory holds is not made.
  CHECK(summary(broadcast_to(ones(1), {std::int64_t{1} << 50})).find("1,125,899,906,842,624") !=
        std::string::npos);
}

}  // namespace timing_test

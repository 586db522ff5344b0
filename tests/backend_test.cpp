// The Backend interface, by a second platform (fake_backend.h): results have the CPU's bits, work goes on after its call, replicas
// share shared memory, failures are reported where values are read.
#include <doctest/doctest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "execute/evaluate.h"
#include "fake_backend.h"
#include "platform_programs.h"
#include "process_helpers.h"
#include "shardarray/shardarray.h"

namespace backend_test {

namespace sa = shardarray;
using platform_test::bits;
using program_test::numbers;
using sa::Array;
using sa::P;
using sa::testing::fake_backend;
using sa::testing::thrown;

namespace {

std::vector<sa::Device> fake_devices() { return (void(fake_backend()), sa::devices("fake")); }
sa::Mesh mesh_on(const char* platform) {
  fake_backend();
  return platform_test::mesh_on(platform);
}
Array put(const Array& x, const char* platform, const P& spec) {
  return platform_test::put(x, mesh_on(platform), spec);
}
const void* memory(const Array& x, std::size_t instance) { return sa::value_of(x)->buffers[instance]->data; }

/// No work starts on the fake devices while it lives.
struct Held {
  Held() { fake_backend().queue.hold(true); }
  ~Held() { fake_backend().queue.hold(false); }
};

}  // namespace

TEST_CASE("backend: a second platform gives the CPU's bits") {
  CHECK(platform_test::training(mesh_on("fake")) == platform_test::training(mesh_on("cpu")));
  CHECK(platform_test::everything(mesh_on("fake")) == platform_test::everything(mesh_on("cpu")));
  CHECK(platform_test::loop(mesh_on("fake")) == platform_test::loop(mesh_on("cpu")));
}

TEST_CASE("backend: the tiles of a result are asked for in one call") {
  const Array x = put(numbers({8, 4}), "fake", P("x", "y"));
  const auto f = sa::jit([](const Array& a) { return std::pair(a + 1, sa::sum(a, 1)); });
  f(x);
  fake_backend().siblings.clear();
  const auto [y, s] = f(x);
  // Scratch first, if the program needs some: one call for all devices. s lies on four pairs of replicas, a pair in each memory.
  std::vector<std::size_t>& calls = fake_backend().siblings;
  REQUIRE(calls.size() >= 2);
  CHECK(calls[calls.size() - 2] == 8);
  CHECK(calls.back() == 4);
  CHECK(calls.size() <= 3);
}

TEST_CASE("backend: a placement that fits its devices' memory wins over one that moves less") {
  const auto product_on = [](const char* platform) {
    const auto f = sa::jit([=](const Array& a, const Array& b) {
      return sa::filter_shard(sa::matmul(a, b), sa::NamedSharding(mesh_on(platform), P("x")));
    });
    const Array a = put(numbers({48, 16}), platform, P("x")), b = put(numbers({16, 256}), platform, P("y"));
    return std::pair(sa::explain(f, a, b), bits(f(a, b)));
  };
  const auto [most, want] = product_on("cpu");
  const auto [least, got] = product_on("fake");
  CHECK(program_test::transfers(most) == "all_gather{y} 8192");
  CHECK(least.peak_bytes_per_device < most.peak_bytes_per_device);
  CHECK(got == want);
}

TEST_CASE("backend: work goes on after the call that asked for it; reading waits") {
  const Array x = put(numbers({8, 4}), "fake", P("x"));
  const auto f = sa::jit([](const Array& a) { return sa::sum(a * 2); });
  const float want = f(x).item<float>();
  auto held = std::make_unique<Held>();
  const std::uint64_t before = fake_backend().queue.done();
  const Array later = f(x), much_later = f(later * x);
  CHECK(fake_backend().queue.done() == before);
  auto read = std::async(std::launch::async, [&] { return sa::block_until_ready(later).item<float>(); });
  CHECK(read.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  held.reset();
  CHECK(read.get() == want);
  CHECK(much_later.item<float>() == want * want);
}

TEST_CASE("backend: memory goes back and serves again while the work on it is still to come") {
  const auto f = sa::jit([](const Array& a, const Array& b) { return sa::sort(a * 2 + b) - b; });
  const auto rounds = [&](const char* platform) {
    Array x = put(numbers({4000}), platform, P("x"));
    const Array y = put(numbers({4000}), platform, P("y"));
    auto held = platform == std::string("fake") ? std::make_unique<Held>() : nullptr;
    for (int k = 0; k < 10; k++) x = f(x * 0.5f, y);  // temporaries of all rounds are given back by now
    held.reset();
    return bits(x);
  };
  CHECK(rounds("fake") == rounds("cpu"));
}

TEST_CASE("backend: replicas are one buffer for each memory") {
  const auto devices = fake_devices();
  CHECK((devices[0].memory == 0 && devices[3].memory == 0 && devices[4].memory == 1));
  const auto buffers = [](const Array& x) { return sa::value_of(x)->buffers.size(); };
  CHECK(buffers(put(numbers({8}), "fake", P())) == 2);
  CHECK(buffers(put(numbers({8}), "cpu", P())) == 1);
  CHECK(buffers(put(numbers({8}), "fake", P("y"))) == 4);  // two parts, each in two memories
  CHECK(buffers(put(numbers({8}), "fake", P("x"))) == 4);  // the two with a part are in one memory
  const Array whole = put(numbers({8}), "fake", P());
  const Array doubled = sa::jit([](const Array& a) { return a * 2; })(whole);
  CHECK(buffers(doubled) == 2);
  CHECK(memory(doubled, 0) != memory(doubled, 1));
  for (const sa::Shard& s : doubled.addressable_shards())
    CHECK(bits(s.data) == bits(sa::device_put(numbers({8}) * 2, sa::SingleDeviceSharding(s.device))));
  // What is in one memory only is copied to the others; nothing is copied within one.
  const Array alone = sa::device_put(numbers({8}), devices[1]);
  const Array everywhere = sa::device_put(alone, sa::NamedSharding(mesh_on("fake"), P()));
  CHECK(memory(everywhere, 0) == memory(alone, 0));
  CHECK(memory(everywhere, 1) != memory(alone, 0));
  CHECK(bits(everywhere) == bits(numbers({8})));
}

TEST_CASE("backend: arrays of one platform go to another only by way of their backends") {
  const Array here = numbers({8, 4}), there = put(here, "fake", P("x"));
  CHECK(bits(there) == bits(here));
  CHECK(bits(put(there, "cpu", P("y"))) == bits(here));
  CHECK(bits(there + here) == bits(here + here));  // an array that nothing holds follows
  CHECK((there + here).devices()[0].platform == "fake");
  const Array made = sa::make_array_from_callback(
      {8, 4}, sa::NamedSharding(mesh_on("fake"), P("y")),
      [&](const sa::ShardIndex& i) { return here[sa::slice(i[0].start, i[0].stop)]; });
  CHECK(bits(made) == bits(here));
  CHECK(sa::value_of(made)->buffers.size() == 4);
  const Array x = put(here, "cpu", P("x"));
  CHECK(thrown([&] { sa::eval(x + there); }).find("Received incompatible devices") != std::string::npos);
  CHECK(
      thrown([&] {
        sa::device_put(here, sa::NamedSharding(
                                 sa::Mesh({{2}, {sa::devices("cpu")[0], fake_devices()[1]}}, {"x"}), P("x")));
      }) ==
      "devices: cpu:0 and fake:1 are in one sharding. All devices of a sharding are of one platform. Choose "
      "devices of one, and move arrays with device_put.");
  sa::Device forged = fake_devices()[5];
  forged.memory = 0;
  CHECK(thrown([&] { sa::device_put(here, forged); }) ==
        "device_put: the device fake:5 is said to be in memory 0, but is in memory 1. Where a device lies is "
        "not "
        "chosen. Use one of devices().");
  CHECK(thrown([] { sa::devices("tpu"); }) ==
        "devices: the platform 'tpu' is unknown. This process has the platforms 'cpu', 'cuda', 'fake'. Use "
        "one of them.");
  CHECK(thrown([] { sa::add_platform("fake", nullptr); }) ==
        "add_platform: there is a platform 'fake' already. Names are unique. Choose another.");
}

TEST_CASE("backend: what fails later fails where it is read, and so does all that follows") {
  const Array x = put(numbers({8}), "fake", P("x"));
  const auto f = sa::jit([](const Array& a) { return a + 1; });
  const Array early = f(x);
  const std::string failure = "fake: a wire was cut";
  fake_backend().runs_to_failure = 0;
  const Array lost = f(x);
  const Array after = f(lost * 2);
  CHECK(thrown([&] { sa::block_until_ready(lost); }) == failure);
  CHECK(thrown([&] { lost.to_vector<float>(); }) == failure);
  CHECK(thrown([&] { sa::block_until_ready(after); }) == failure);
  CHECK(thrown([&] { early.to_vector<float>(); }) == failure);  // its device is gone with all it holds
  fake_backend().queue.forget_failure();
  CHECK(bits(f(put(numbers({8}), "fake", P("x")))) == bits(numbers({8}) + 1));
}

TEST_CASE("backend: memory that is short is named with its device, and nothing is lost") {
  const auto devices = fake_devices();
  const Array x = put(numbers({8}), "fake", P("x"));
  const auto in_use = [&] {
    std::size_t all = 0;
    for (const sa::Device& d : devices) all += fake_backend().memory_stats(d.id).in_use;
    return all;
  };
  const std::size_t before = in_use();
  fake_backend().memory.refuse = true;
  const std::string message =
      thrown([&] { sa::block_until_ready(sa::device_put(sa::ones({1'000'000}), devices[3])); });
  fake_backend().memory.refuse = false;
  CHECK(message.find("device_put: the system refused 4000000 bytes for fake:3") == 0);
  CHECK(in_use() == before);
}

}  // namespace backend_test

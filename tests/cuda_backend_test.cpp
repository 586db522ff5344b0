// The CUDA backend over the fake driver (tests/cuda/), as the default platform of separate processes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuda_fake.h"
#include "execute/evaluate.h"
#include "platform_programs.h"
#include "process_helpers.h"
#include "runtime/devices.h"
#include "shardarray/shardarray.h"

namespace cuda_backend_test {

namespace sa = shardarray;
using platform_test::bits;
using platform_test::mesh_on;
using platform_test::put;
using program_test::numbers;
using sa::Array;
using sa::P;
using sa::testing::fake_control;
using sa::testing::fake_folder;
using sa::testing::fake_process;
using sa::testing::on_fake;
using sa::testing::on_fake_in_any_order;
using sa::testing::run_case;
using sa::testing::thrown;

namespace {

/// No stream starts any work while it lives.
struct Held {
  Held() { fake_control().hold(true); }
  ~Held() { fake_control().hold(false); }
};

std::size_t in_use() {
  std::size_t all = 0;
  for (const sa::Device& d : sa::devices("cuda")) all += sa::backend("cuda").memory_stats(d.id).in_use;
  return all;
}

}  // namespace

TEST_CASE("cuda process: numbers" * doctest::skip()) {
  CHECK(platform_test::everything(mesh_on("cuda")) == platform_test::everything(mesh_on("cpu")));
  CHECK(platform_test::training(mesh_on("cuda")) == platform_test::training(mesh_on("cpu")));
  program_test::check_received(
      sa::jit([](const Array& a) {
        const Array rows = sa::filter_shard(a * 2, sa::NamedSharding(mesh_on("cuda"), P("y", "x")));
        return sa::filter_shard(rows + sa::sum(rows, 0), sa::NamedSharding(mesh_on("cuda"), P()));
      }),
      put(numbers({8, 8}), "cuda", P("x", "y")));
}

TEST_CASE("cuda process: arrays go where the platform says" * doctest::skip()) {
  const std::vector<sa::Device> all = sa::devices();
  REQUIRE(all.size() == 8);
  CHECK(sa::devices("gpu") == sa::devices("cuda"));
  CHECK(all == sa::devices("cuda"));
  CHECK(to_string(all[5]) == "cuda:5");
  for (const sa::Device& d : all) CHECK((d.kind == "fake GPU" && d.memory == 0));
  CHECK(sa::ones({3}).devices()[0] == all[0]);
  CHECK((sa::ones({3}) + 1).devices()[0] == all[0]);
  const Array here = [] {
    const sa::default_device cpu(sa::devices("cpu")[0]);
    return numbers({6, 5});
  }();
  CHECK(here.devices()[0].platform == "cpu");
  const Array there = sa::device_put(here, all[3]);
  CHECK(there.devices()[0] == all[3]);
  CHECK(bits(there) == bits(here));
  CHECK(bits(sa::device_put(there * 2, sa::devices("cpu")[1])) == bits(here + here));
  const Array everywhere = put(there, "cuda", P());
  CHECK(sa::value_of(everywhere)->buffers.size() == 1);  // one memory
  CHECK(thrown([] {
          sa::pmap([](const Array& a) { return a; })(sa::ones({9, 2}));
        }).find("make more virtual devices (SHARDARRAY_CUDA_LOGICAL_DEVICES).") != std::string::npos);
  CHECK(thrown([] {
          sa::make_mesh({{"x", 9}});
        }).find("or more virtual devices (SHARDARRAY_CUDA_LOGICAL_DEVICES).") != std::string::npos);
  CHECK(thrown([] { sa::set_cpu_device_count(9); }).find("the process uses 8 already") != std::string::npos);
}

TEST_CASE("cuda process: work goes on after the call" * doctest::skip()) {
  const Array x = put(numbers({8, 4}), "cuda", P("x"));
  const auto f = sa::jit([](const Array& a) { return sa::sum(a * 2); });
  const float want = f(x).item<float>();
  std::vector<float> large(2'000'003);  // more than one piece of staging, and no whole number of them
  for (std::size_t k = 0; k < large.size(); k++) large[k] = static_cast<float>(k % 1000);
  const std::vector<float> before = large;
  auto held = std::make_unique<Held>();
  const std::uint64_t done = fake_control().done();
  const Array later = f(x), much_later = f(later * x);
  const Array uploaded = sa::array(large, {2'000'003});
  std::fill(large.begin(), large.end(), -1.0f);  // the host's memory is the host's again
  CHECK(fake_control().done() == done);
  auto read = std::async(std::launch::async, [&] { return sa::block_until_ready(later).item<float>(); });
  CHECK(read.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  held.reset();
  CHECK(read.get() == want);
  CHECK(much_later.item<float>() == want * want);
  CHECK(uploaded.to_vector<float>() == before);
  // More than all staging memory: the call waits for the stream.
  for (std::size_t k = 0; k < large.size(); k++) large[k] = static_cast<float>(k % 999);
  held = std::make_unique<Held>();
  auto release = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    held.reset();
  });
  std::vector<Array> copies;
  for (int k = 0; k < 3; k++) copies.push_back(sa::array(large, {2'000'003}));
  const std::vector<float> again = std::exchange(large, {});
  release.get();
  for (const Array& c : copies) CHECK(c.to_vector<float>() == again);
  // Donated memory and temporaries are reused while earlier work is running.
  const auto g = sa::jit([](const Array& a, const Array& b) { return sa::sort(a * 2 + b) - b; });
  const auto rounds = [&](const char* platform) {
    Array v = put(numbers({4000}), platform, P("x"));
    const Array y = put(numbers({4000}), platform, P("y"));
    auto hold = platform == std::string("cuda") ? std::make_unique<Held>() : nullptr;
    for (int k = 0; k < 10; k++) v = g(v * 0.5f, y);
    hold.reset();
    return bits(v);
  };
  CHECK(rounds("cuda") == rounds("cpu"));
  // More values than an argument of a kernel holds.
  std::vector<Array> many;
  for (int k = 0; k < 90; k++) many.push_back(put(sa::full({16}, static_cast<float>(k)), "cuda", P("x")));
  const auto sum = sa::jit([](const std::vector<Array>& all) {
    Array s = all[0];
    for (std::size_t k = 1; k < all.size(); k++) s = s + all[k];
    return s;
  });
  CHECK(sum(many).to_vector<float>() == std::vector<float>(16, 90 * 89 / 2));
  // Several threads at once.
  std::vector<std::future<float>> threads;
  for (int k = 0; k < 4; k++)
    threads.push_back(std::async(std::launch::async, [&] {
      float all = 0;
      for (int n = 0; n < 20; n++) all += f(x).item<float>();
      return all;
    }));
  for (auto& t : threads) CHECK(t.get() == 20 * want);
}

TEST_CASE("cuda process: every call may fail" * doctest::skip()) {
  constexpr std::int64_t rows = 8, length = 2100;  // of lines that CUB sorts
  const std::vector<float> plain = numbers({rows, length}).to_vector<float>();
  // A program of its own each time, so that loading may fail too.
  int number = 0;
  const auto once = [&] {
    const auto factor = static_cast<float>(++number);
    const auto f = sa::jit([=](const Array& a, const Array& b) { return sa::sort(a * factor + b); });
    const Array x = put(numbers({rows, length}), "cuda", P("x"));
    const std::vector<float> result = f(x, x + 1).to_vector<float>();
    std::vector<float> want;
    for (const float v : plain) want.push_back(v * factor + (v + 1));
    for (auto row = want.begin(); row != want.end(); row += length) std::stable_sort(row, row + length);
    return result == want;
  };
  CHECK(once());
  const std::size_t before = in_use();
  for (const int status : {1, 2}) {
    int failures = 0, with_line = 0;
    for (int k = 0, reached = 1; reached != 0; k++) {
      const std::uint64_t calls = fake_control().calls();
      fake_control().fail_call(k, status);
      std::string message;
      try {
        const bool right = once();
        CHECK(right);
      } catch (const sa::OutOfMemory& e) {
        CHECK(status == 2);
        message = e.what();
      } catch (const sa::DeviceError& e) {
        CHECK(status == 1);
        message = e.what();
      }
      reached = fake_control().calls() - calls > static_cast<std::uint64_t>(k) ? 1 : 0;
      fake_control().fail_call(-1, 0);
      CHECK_MESSAGE(in_use() == before, k, " ", message);
      CHECK_MESSAGE(once(), k, " ", message);
      if (message.empty()) continue;
      failures++;
      const std::string call = fake_control().last_call();
      // Whatever CUDA lacks memory for is tried once more.
      for (const char* const name : {"cudaLibraryGetKernel", "cudaLaunchKernel", "cub::DeviceRadixSort"})
        CHECK_MESSAGE((status == 1 || call != name), message);
      CHECK_MESSAGE(message.find("cuda: " + call + " failed on GPU 0 (fake GPU)") == 0, message);
      if (call != "cudaLaunchKernel") continue;
      CHECK_MESSAGE(message.find(" in '") != std::string::npos, message);
      if (message.find("cuda_backend_test.cpp:") != std::string::npos) with_line++;
    }
    CHECK(failures > 10);
    CHECK((with_line > 0) == (status == 1));
  }
}

TEST_CASE("cuda process: CUDA lacks memory of its own" * doctest::skip()) {
  constexpr std::size_t block = std::size_t{32} << 20;
  const Array x = put(numbers({16, 8}), "cuda", P("x")), y = put(numbers({16, 8}), "cpu", P("x"));
  auto step = [n = 0]() mutable {  // another program each time
    return sa::jit([k = static_cast<float>(++n)](const Array& v) {
      return sa::sort(sa::tanh(v * k) + sa::sum(v, 0), -1);
    });
  };
  std::string said;
  bool right = true;
  std::uint64_t graphs = 0;  // of the last runs
  // After so many runs, in which that call lacks memory so often: is what nobody uses still there?
  const auto kept_after = [&](const auto& f, int runs, const char* call = "", int times = 0) {
    sa::block_until_ready(sa::full({block / 4}, 1.0f));
    const std::size_t before = fake_control().held();
    CHECK(before >= block);
    const auto want = bits(f(y));
    fake_control().fail_named(call, times, 2);
    const std::uint64_t graphs_before = fake_control().graph_launches();
    said = thrown([&] {
      for (int k = 0; k < runs; k++) right = right && bits(f(x)) == want;
    });
    graphs = fake_control().graph_launches() - graphs_before;
    CHECK(right);
    return fake_control().held() + block / 2 > before;
  };
  {
    const auto f = step();
    CHECK(kept_after(f, 2));  // where nothing lacks, it stays
  }
  for (const char* const call :
       {"cudaLibraryGetKernel", "cudaLaunchKernel", "cudaGraphInstantiate", "cudaGraphLaunch"}) {
    CAPTURE(call);
    const auto f = step();
    CHECK_FALSE(kept_after(f, 6, call, 1));
    CHECK(graphs == 4);
    CHECK_MESSAGE(said.empty(), said);
    CHECK(fake_control().last_call() == std::string(call));
  }
  // Where there is none for it either way.
  const auto f = step();
  CHECK_FALSE(kept_after(f, 1, "cudaLaunchKernel", 2));
  CHECK_MESSAGE(said.find("cuda: cudaLaunchKernel failed on GPU 0 (fake GPU) in '") == 0, said);
  CHECK_MESSAGE(said.find(" CUDA needs some memory beside the arrays. Free arrays.") != said.npos, said);
  kept_after(f, 50, "cudaGraphInstantiate", 2);
  CHECK(graphs == 0);  // launch by launch,
  CHECK_MESSAGE(said.empty(), said);
  kept_after(f, 100);
  CHECK(graphs > 0);  // and not for good
}

TEST_CASE("cuda process: what fails later stays failed" * doctest::skip()) {
  const Array x = put(numbers({8}), "cuda", P("x"));
  const auto f = sa::jit([](const Array& a) { return sa::tanh(a); });
  const Array early = sa::block_until_ready(f(x));
  auto held = std::make_unique<Held>();
  fake_control().fail_work(0, 700);
  const Array lost = f(x);
  sa::eval(lost);
  held.reset();
  const std::string message = thrown([&] { sa::block_until_ready(lost); });
  CHECK_MESSAGE(message.find("cuda: cudaEventSynchronize failed on GPU 0 (fake GPU) in 'tanh' (") == 0,
                message);
  CHECK_MESSAGE(message.find("cuda_backend_test.cpp:") != std::string::npos, message);
  CHECK_MESSAGE(message.find("): cudaErrorIllegalAddress, as the test wants it. All that is on the GPU is "
                             "lost. Restart the process.") != std::string::npos,
                message);
  CHECK(thrown([&] { early.to_vector<float>(); }) == message);  // its device is gone with all it holds
  CHECK(thrown([&] { sa::eval(f(x) + 1); }) == message);
  CHECK(thrown([&] { sa::eval(put(numbers({8}), "cuda", P())); }) == message);
  const sa::default_device cpu(sa::devices("cpu")[0]);
  CHECK(bits(numbers({8}) * 2) == bits(numbers({8}) + numbers({8})));
}

TEST_CASE("cuda process: memory that is short" * doctest::skip()) {
  const auto all = sa::devices();
  const Array x = put(numbers({8}), "cuda", P("x"));
  sa::block_until_ready(x + 1);
  for (const sa::Device& d : all) {  // a thread keeps the numbers that it used last
    const sa::default_device here(d);
    sa::block_until_ready(sa::arange(8.0));
  }
  const std::size_t before = in_use();
  fake_control().set_capacity(std::size_t{30} << 20);
  const std::string message = thrown([&] {
    const sa::default_device there(all[3]);
    sa::block_until_ready(sa::arange(8'000'000.0));
  });
  CHECK_MESSAGE(message.find("arange: the system refused 32000000 bytes for cuda:3 (") == 0, message);
  CHECK(in_use() == before);
  // What one device has no use for serves another.
  for (const sa::Device& d : all) {
    const sa::default_device here(d);
    CHECK(sa::max(sa::block_until_ready(sa::arange(3'000'000.0))).item<float>() == 2'999'999);
  }
  CHECK(in_use() == before);
}

TEST_CASE("cuda process: no devices" * doctest::skip()) {
  for (int k = 0; k < 2; k++)  // asked again each time
    std::printf("said: %s\n", thrown([] { sa::devices("cuda"); }).c_str());
  std::printf("and: %s\n", thrown([] { sa::eval(sa::ones({3}) + 1); }).c_str());
}

TEST_CASE("cuda: programs have the CPU's bits, and move the bytes that were planned") {
  on_fake_in_any_order("cuda process: numbers");
  on_fake("cuda process: numbers", "SHARDARRAY_DEBUG_FILL=1");
  on_fake("cuda process: numbers", "SHARDARRAY_SHARE_REPLICAS=0");
}
TEST_CASE(
    "cuda: SHARDARRAY_PLATFORM says where arrays go, SHARDARRAY_CUDA_LOGICAL_DEVICES how many there are") {
  on_fake("cuda process: arrays go where the platform says");
  on_fake("cuda process: arrays go where the platform says", "SHARDARRAY_PLATFORM=gpu");
}
TEST_CASE("cuda: work goes on after its call, and reads what it should") {
  on_fake_in_any_order("cuda process: work goes on after the call");
}
TEST_CASE("cuda: a call that fails is named and leaves no trace; work that fails takes the GPU with it") {
  on_fake("cuda process: every call may fail");
  on_fake("cuda process: what fails later stays failed");
}
TEST_CASE("cuda: where CUDA itself lacks memory, what nobody uses is given back, and it is asked once more") {
  on_fake("cuda process: CUDA lacks memory of its own", "SHARDARRAY_CODEGEN=off");
}
TEST_CASE("cuda: memory that is short is named with its device, and taken from others' reserves") {
  on_fake("cuda process: memory that is short");
}
TEST_CASE("cuda: what is missing is said") {
  const std::string name = "cuda process: no devices", cpu = "use the platform 'cpu'.\n";
  const auto says = [&](const std::string& settings, const std::string& message) {
    const std::string text = fake_process(name, settings).text;
    const std::string twice = "said: " + message + "\nsaid: " + message + "\n";
    CHECK_MESSAGE(text.find(twice) != text.npos, settings, ": ", text);
    return text;
  };
  const std::string none =
      says("SHARDARRAY_FAKE_DRIVER=0",
           "cuda: this machine has no NVIDIA driver. CUDA devices need one for CUDA 13 or newer. Install it, "
           "or use the platform 'cpu'.");
  CHECK_MESSAGE(none.find("and: \n") != none.npos, none);  // the CPU is not concerned
  const std::string chosen = says(
      "SHARDARRAY_FAKE_DRIVER=12040 SHARDARRAY_PLATFORM=cuda",
      "cuda: the NVIDIA driver is for CUDA 12.4. The library needs one for CUDA 13 or newer. Install it, "
      "or use the platform 'cpu'.");
  CHECK_MESSAGE(chosen.find("and: cuda: the NVIDIA driver is for CUDA 12.4.") != chosen.npos, chosen);
  says("SHARDARRAY_FAKE_GPUS=0",
       "cuda: the NVIDIA driver shows no GPU. CUDA_VISIBLE_DEVICES may hide them. Correct the variable, or "
       "use the platform 'cpu'.");
  const std::string broken = says(
      "SHARDARRAY_FAKE_COUNT_STATUS=802 SHARDARRAY_PLATFORM=cuda",
      "cuda: cudaGetDeviceCount failed: cudaErrorSystemNotReady, as the test wants it. CUDA devices need a "
      "driver that works. Ask nvidia-smi what is wrong, or use the platform 'cpu'.");
  CHECK_MESSAGE(broken.find("and: cuda: cudaGetDeviceCount failed: ") != broken.npos, broken);
  says(
      "SHARDARRAY_FAKE_ARCHITECTURE=7",
      "cuda: GPU 0 (fake GPU) has compute capability 7.0. The library has kernels for 8.0 and newer. Hide it "
      "with CUDA_VISIBLE_DEVICES, or use the platform 'cpu'.");
  says("SHARDARRAY_CUDA_LOGICAL_DEVICES=0",
       "environment: SHARDARRAY_CUDA_LOGICAL_DEVICES=0 is not understood. It must be an integer from 1 to "
       "1024. Correct the variable or unset it.");
  says("SHARDARRAY_PLUGIN_DIR=/nowhere",
       "cuda: /nowhere/libshardarray_cuda.so: cannot open shared object file: No such file or directory. "
       "Install the plug-in beside the library, with an NVIDIA driver, or name its folder in "
       "SHARDARRAY_PLUGIN_DIR.");
  const std::string unknown = fake_process(name, "SHARDARRAY_PLATFORM=tpu").text;
  CHECK_MESSAGE(
      unknown.find("and: environment: SHARDARRAY_PLATFORM=tpu is not understood. This process has "
                   "the platforms 'cpu', 'cuda'. Correct the variable or unset it.") != unknown.npos,
      unknown);
}
TEST_CASE("cuda: the plug-in of this build opens wherever the process runs") {
  const std::string folder = sa::testing::own_program().parent_path().string();
  if (!std::filesystem::exists(folder + "/libshardarray_cuda.so")) {
    MESSAGE("skipped: this build has none");
    return;
  }
  const std::string text =
      run_case("cuda process: no devices", "SHARDARRAY_PLUGIN_DIR='" + folder + "'").text;
  const bool has = text.find("said: \nsaid: \n") != text.npos;  // there is a GPU
  CHECK_MESSAGE((has || text.find("said: cuda: this machine has no NVIDIA driver.") != text.npos ||
                 text.find("said: cuda: the NVIDIA driver ") != text.npos),
                text);
}

}  // namespace cuda_backend_test

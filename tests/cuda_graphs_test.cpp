// Runs as CUDA graphs, on the fake GPU (tests/cuda/): the CPU's numbers for any addresses, and whichever call fails.
#include <doctest/doctest.h>

#include <deque>
#include <future>
#include <string>
#include <vector>

#include "cuda/driver.h"
#include "cuda_fake.h"
#include "platform_programs.h"
#include "scale.h"
#include "shardarray/shardarray.h"

namespace cuda_graphs_test {

namespace sa = shardarray;
using namespace sa::testing;
using platform_test::put;
using program_test::numbers;
using sa::Array;
using sa::P;

namespace {

const std::string both =
    "SHARDARRAY_CPU_DEVICES=8 SHARDARRAY_CUDA_LOGICAL_DEVICES=8 SHARDARRAY_PLATFORM=cuda "
    "SHARDARRAY_CACHE_DIR= ";
std::uint64_t graphs() { return fake_control().graph_launches(); }
std::uint64_t gpu_count() { return static_cast<std::uint64_t>(sa::devices("cuda").back().memory + 1); }

/// Several GPUs take several times as long.
bool every_case() { return gpu_count() == 1 || full_scale(); }

/// Rounds of v = step(v, x); `kept` results stay alive, so that as many addresses take turns. Every result's bits.
template <class F>
std::vector<platform_test::Bits> rounds(const F& step, const char* platform, std::size_t kept, int count) {
  std::vector<platform_test::Bits> all;
  const Array x = put(numbers({16, 8}), platform, P("x"));
  Array v = put(numbers({16, 8}), platform, P("x", "y"));
  std::deque<Array> alive;
  for (int k = 0; k < count; k++) {
    v = step(v, x);
    alive.push_back(v);
    if (alive.size() > kept) alive.pop_front();
    all.push_back(platform_test::bits(v));
  }
  return all;
}

/// The same on both; most rounds are graphs. Several numbers of addresses: fewer than are kept, and more.
template <class F> void check_rounds(const F& make) {
  for (const std::size_t kept : {0, 1, 3, 4, 9}) {
    if (!every_case() && (kept == 1 || kept == 3)) continue;
    const auto step = make();
    const auto want = rounds(step, "cpu", kept, 16);
    const std::uint64_t before = graphs();
    CHECK(rounds(step, "cuda", kept, 16) == want);
    CHECK(graphs() >= before + 13);  // a first carry that lies elsewhere has a program of its own
  }
}

Array layers(const Array& v, const Array& x) {
  const Array rows = sa::sort(v * 0.5f + x, -1);
  return sa::tanh(rows + sa::sum(rows, 0)) - sa::flip(v, 0);
}
Array products(const Array& v, const Array& x) {
  return sa::tanh(sa::matmul(v, sa::matmul(sa::transpose(x), x)) * 0.01f) + v;
}
Array steps(const Array& v, const Array& x) {
  return sa::fori_loop(
      0, 5, [&](const Array&, const Array& c) { return sa::tanh(c + sa::sum(x, 0)) + x; }, v);
}

}  // namespace

TEST_CASE("cuda process: graphs of programs" * doctest::skip()) {
  check_rounds([] { return sa::jit(layers); });
  check_rounds([] { return sa::jit(products); });
  check_rounds([] { return sa::jit(steps); });
  // More addresses than arguments of a kernel hold.
  check_rounds([] {
    return [f = sa::jit([](const std::vector<Array>& all) {
              Array s = all[0];
              for (std::size_t k = 1; k < all.size(); k++) s = sa::sort(s, -1) * 0.5f + all[k];
              return s;
            })](const Array& v, const Array& x) {
      std::vector<Array> all(12, x);
      all[3] = v;
      return f(all);
    };
  });
  // Donation: two buffers take turns, or one is enough.
  const auto step = sa::jit([](Array v, const Array& x) { return layers(v, x); });
  const auto trained = [&](const char* platform) {
    Array v = put(numbers({16, 8}), platform, P("x", "y"));
    const Array x = put(numbers({16, 8}), platform, P("x"));
    for (int k = 0; k < 20; k++) v = step(std::move(v), x);
    return platform_test::bits(v);
  };
  const auto want = trained("cpu");
  const std::uint64_t before = graphs();
  CHECK(trained("cuda") == want);
  CHECK(graphs() >= before + 18);
}

TEST_CASE("cuda process: graphs of products by a library" * doctest::skip()) {
  const auto step = sa::jit(products);
  for (const std::size_t kept : {0, 3, 9}) {
    const auto want = rounds(step, "cpu", kept, 16);
    const std::uint64_t before = graphs(), made = fake_control().products(0);
    const auto all = rounds(step, "cuda", kept, 16);
    CHECK(graphs() >= before + 14);
    CHECK(fake_control().products(0) > made);
    for (std::size_t k = 0; k < want.size(); k++)
      for (std::size_t j = 0; j < want[k].size(); j++)
        CHECK(std::bit_cast<float>(all[k][j]) ==
              doctest::Approx(std::bit_cast<float>(want[k][j])).epsilon(1e-4));
  }
}

TEST_CASE("cuda process: graphs of products that are other kernels at other addresses" * doctest::skip()) {
  const auto step = sa::jit([](const Array& v, const Array& x) { return sa::tanh(sa::matmul(v, x)) + v; });
  const auto calls = [](const char* name) { return fake_control().calls_of(name); };
  const auto all_rounds = [&](const char* platform) {
    const sa::default_device there(sa::devices(platform)[0]);
    const Array x = numbers({9, 9}) * 0.01f;
    std::deque<Array> alive = {numbers({17, 9})};
    std::vector<float> sums;
    for (int k = 0; k < 60; k++) {  // results at addresses that take turns, more of them than graphs are kept
      alive.push_back(step(alive.back(), x));
      if (alive.size() > 7) alive.pop_front();
      sums.push_back(sa::sum(alive.back()).item<float>());
    }
    return sums;
  };
  const std::vector<float> want = all_rounds("cpu");
  const std::uint64_t before = graphs();
  const std::vector<float> got = all_rounds("cuda");
  for (std::size_t k = 0; k < want.size(); k++) CHECK(got[k] == doctest::Approx(want[k]).epsilon(1e-4));
  CHECK(graphs() >= before + 50);
  constexpr std::uint64_t kept = 6;
  const std::uint64_t updates = calls("cudaGraphExecUpdate"), made = calls("cudaGraphInstantiate");
  CHECK(made > kept);            // some updates were refused, and the graph was made anew,
  CHECK(made < kept + updates);  // and some were not
}

TEST_CASE("cuda process: graphs on several threads" * doctest::skip()) {
  const auto step = sa::jit(layers);
  const auto want = rounds(step, "cpu", 2, 12);
  std::vector<std::future<bool>> all;
  for (std::size_t k = 0; k < 4; k++)
    all.push_back(std::async(std::launch::async, [&, k] { return rounds(step, "cuda", k, 12) == want; }));
  for (auto& t : all) CHECK(t.get());
  CHECK(graphs() > 0);
}

TEST_CASE("cuda process: graphs whose calls fail" * doctest::skip()) {
  const int every = full_scale() ? 40 : gpu_count() == 1 ? 8 : 2;  // of the calls, beyond the first
  for (const auto& body : {layers, products, steps}) {
    const auto want = rounds(sa::jit(body), "cpu", 5, 9);
    for (const int status : {1, 2})
      for (int k = 0, reached = 1; reached != 0; k += 1 + k / every) {
        const auto step = sa::jit(body);
        const std::uint64_t calls = fake_control().calls();
        fake_control().fail_call(k, status);
        try {
          const bool right = rounds(step, "cuda", 5, 9) == want;
          CHECK(right);
        } catch (const sa::Error& e) {
          CHECK_MESSAGE(std::string(e.what()).find(fake_control().last_call()) != std::string::npos,
                        e.what());
        }
        reached = fake_control().calls() - calls > static_cast<std::uint64_t>(k) ? 1 : 0;
        fake_control().fail_call(-1, 0);
        CHECK_MESSAGE(rounds(step, "cuda", 5, 9) == want, k);
      }
  }
}

TEST_CASE("cuda process: work of a graph fails" * doctest::skip()) {
  const auto step = sa::jit(layers);
  rounds(step, "cuda", 0, 5);
  fake_control().fail_work(60, 700);
  std::string message;
  try {
    rounds(step, "cuda", 0, 40);
  } catch (const sa::DeviceError& e) { message = e.what(); }
  CHECK_MESSAGE(message.find("cudaErrorIllegalAddress") != std::string::npos, message);
  CHECK_MESSAGE(message.find("All that is on the GPU is lost.") != std::string::npos, message);
}

TEST_CASE("cuda process: a run is one graph" * doctest::skip()) {
  for (const auto& body : {layers, steps}) {
    const auto step = sa::jit(body);
    const Array x = put(numbers({16, 8}), "cuda", P("x"));
    const Array here = put(numbers({16, 8}), "cuda", P("x", "y"));
    Array v = sa::block_until_ready(step(here, x));
    std::uint64_t one_by_one = 0;  // calls
    for (int run = 1; run < 12; run++) {
      const std::uint64_t graphs_before = graphs(), calls_before = fake_control().calls();
      v = sa::block_until_ready(step(here, x));
      const std::uint64_t calls = fake_control().calls() - calls_before;
      CHECK(graphs() == graphs_before + (run < 2 ? 0 : 1));
      if (run == 1) one_by_one = calls;
      if (run < 11) continue;
      // Addresses that return: a few calls for each GPU, whatever the program does.
      CHECK(calls <= 14 * gpu_count());
      CHECK(calls < one_by_one / 2);
    }
  }
}

TEST_CASE("cuda process: streams that are captured together" * doctest::skip()) {
  const sa::cuda::Driver& d = fake_control().driver();
  sa::cuda::Stream s[2];
  static sa::cuda::Event e[2];  // which live as long as the process, as the library's do
  void* p = nullptr;
  for (const int g : {1, 0}) {
    d.set_device(g);
    REQUIRE((d.stream_create(&s[g]) == 0 && d.event_create(&e[g]) == 0));
  }
  REQUIRE(d.malloc(&p, 8) == 0);
  const auto record = [&](int g) {
    d.set_device(g);
    return d.event_record(e[g], s[g]);
  };
  const auto wait = [&](int g, int for_gpu) {
    d.set_device(g);
    return d.stream_wait_event(s[g], e[for_gpu]);
  };
  const auto work = [&](int g) {
    d.set_device(g);
    CHECK(d.fill_async(p, 1, 8, s[g]) == 0);
  };
  const auto fork = [&] { CHECK((record(0) == 0 && wait(1, 0) == 0)); };
  const auto join = [&] { CHECK((record(1) == 0 && wait(0, 1) == 0)); };
  const auto captured = [&](const auto& body) {
    sa::cuda::GraphHandle graph = nullptr;
    CHECK(d.begin_capture(s[0]) == 0);
    body();
    const int status = d.end_capture(&graph, s[0]);
    CHECK((graph != nullptr) == (status == 0));
    if (graph != nullptr) d.graph_destroy(graph);
    d.last_error();
    return status;
  };
  constexpr int spoiled = 901, origin = 903, unjoined = 904, isolation = 905, event_in_capture = 907;
  const auto fine = [&] {
    fork();
    work(0);
    work(1);
    join();
  };
  CHECK(captured(fine) == 0);
  CHECK(captured(fork) == unjoined);
  CHECK(captured([&] {
          fine();
          work(1);
        }) == unjoined);
  CHECK(captured([&] {
          fork();
          CHECK(d.event_query(e[0]) == event_in_capture);
          join();
        }) == spoiled);
  CHECK(captured([&] {
          sa::cuda::GraphHandle none = nullptr;
          fork();
          CHECK(d.end_capture(&none, s[1]) == origin);
          join();
        }) == spoiled);
  CHECK(wait(1, 0) == event_in_capture);  // of one that has ended
  REQUIRE(record(1) == 0);
  CHECK(captured([&] { CHECK(wait(0, 1) == isolation); }) == spoiled);
  CHECK(captured(fine) == 0);  // nothing of all that is left
  CHECK((record(0) == 0 && wait(1, 0) == 0 && d.stream_synchronize(s[1]) == 0));
}

TEST_CASE("cuda graphs: programs over several GPUs are one graph, with the CPU's bits at any addresses") {
  for (const std::string gpus : {"SHARDARRAY_FAKE_GPUS=2 SHARDARRAY_CUDA_LOGICAL_DEVICES=4 ",
                                 "SHARDARRAY_FAKE_GPUS=4 SHARDARRAY_CUDA_LOGICAL_DEVICES=2 "}) {
    CAPTURE(gpus);
    const bool two = gpus.find("GPUS=2") != gpus.npos;
    for (const bool filled : {false, true})
      if (full_scale() || filled == two)
        CHECK(count_of("is launched step by step",
                       text_on_fake("cuda process: graphs of programs",
                                    both + gpus + "SHARDARRAY_CODEGEN=off" +
                                        (filled ? " SHARDARRAY_DEBUG_FILL=1" : ""))) == 0);
    text_on_fake("cuda process: a run is one graph", both + gpus + "SHARDARRAY_CODEGEN=off");
    text_on_fake("cuda process: graphs on several threads", both + gpus);
    text_on_fake("cuda process: graphs of products by a library",
                 both + gpus + "SHARDARRAY_FAKE_CUBLASLT=1 SHARDARRAY_FAKE_OWN_PRODUCTS=0");
  }
  if (full_scale())
    text_on_fake("cuda process: graphs of programs",
                 both +
                     "SHARDARRAY_FAKE_GPUS=2 SHARDARRAY_CUDA_LOGICAL_DEVICES=4 SHARDARRAY_CODEGEN=on "
                     "SHARDARRAY_FAKE_NVRTC=1");
}

TEST_CASE("cuda graphs: over several GPUs a call that fails is made up for, or named") {
  const std::string two =
      both + "SHARDARRAY_FAKE_GPUS=2 SHARDARRAY_CUDA_LOGICAL_DEVICES=4 SHARDARRAY_CODEGEN=off";
  const std::string text = text_on_fake("cuda process: graphs whose calls fail", two);
  CHECK_MESSAGE(count_of("The program is launched step by step.", text) == 1, text);
  text_on_fake("cuda process: work of a graph fails", two);
}

TEST_CASE("cuda graphs: the stand-in captures several streams as CUDA does") {
  text_on_fake("cuda process: streams that are captured together", both + "SHARDARRAY_FAKE_GPUS=2");
}

TEST_CASE("cuda graphs: programs have the CPU's bits at any addresses, printed or interpreted") {
  for (const std::string settings :
       {"SHARDARRAY_CODEGEN=off", "SHARDARRAY_CODEGEN=off SHARDARRAY_DEBUG_FILL=1",
        "SHARDARRAY_CODEGEN=off SHARDARRAY_SHARE_REPLICAS=0",
        "SHARDARRAY_CODEGEN=always SHARDARRAY_FAKE_NVRTC=1 SHARDARRAY_FAKE_ONE_KERNEL=0",
        "SHARDARRAY_CODEGEN=on SHARDARRAY_FAKE_NVRTC=1 SHARDARRAY_FAKE_ONE_KERNEL=0"}) {
    if (!full_scale() && settings.find("FILL") != settings.npos) continue;
    CHECK(count_of("is launched step by step",
                   text_on_fake("cuda process: graphs of programs", both + settings)) == 0);
  }
}

TEST_CASE("cuda graphs: cuBLASLt's products at any addresses, where its kernels are others too") {
  text_on_fake("cuda process: graphs of products that are other kernels at other addresses",
               both + "SHARDARRAY_FAKE_CUBLASLT=1 SHARDARRAY_FAKE_OWN_PRODUCTS=0 SHARDARRAY_CODEGEN=off");
  text_on_fake("cuda process: graphs of products by a library",
               both + "SHARDARRAY_FAKE_CUBLASLT=1 SHARDARRAY_FAKE_OWN_PRODUCTS=0");
}

TEST_CASE("cuda graphs: several threads") { text_on_fake("cuda process: graphs on several threads", both); }

TEST_CASE("cuda graphs: a call that fails is made up for, or named; work that fails takes the GPU with it") {
  const std::string text =
      text_on_fake("cuda process: graphs whose calls fail", both + "SHARDARRAY_CODEGEN=off");
  CHECK_MESSAGE(count_of("The program is launched step by step.", text) == 1, text);
  text_on_fake("cuda process: work of a graph fails", both);
}

}  // namespace cuda_graphs_test

// Programs over several fake GPUs, each with its own stream: they read each other's tiles, and wait for each other.
#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "cuda/driver.h"
#include "cuda_fake.h"
#include "cuda_gpus.h"
#include "process_helpers.h"
#include "scale.h"
#include "shardarray/shardarray.h"

namespace cuda_gpus_test {

namespace sa = shardarray;
using platform_test::bits;
using platform_test::mesh_on;
using platform_test::put;
using program_test::numbers;
using namespace sa::gpus_test;
using sa::Array;
using sa::P;
using sa::testing::fake_control;
using sa::testing::on_fake;
using sa::testing::on_fake_in_any_order;
using sa::testing::thrown;

TEST_CASE("cuda process: numbers over several GPUs" * doctest::skip()) {
  REQUIRE(sa::devices("cuda").size() >= 8);
  REQUIRE(sa::devices("cuda")[7].memory > 0);
  for (const auto mesh : {mesh_on, backwards_on}) {
    for (int run = 0; run < 4; run++)  // launch by launch at first, then as graphs
      CHECK(platform_test::everything(mesh("cuda")) == platform_test::everything(mesh("cpu")));
    CHECK(platform_test::training(mesh("cuda")) == platform_test::training(mesh("cpu")));
    CHECK(looped(mesh("cuda")) == looped(mesh("cpu")));
  }
  CHECK(mapped("cuda") == mapped("cpu"));
  CHECK(fake_control().graph_launches() > 0);
}

TEST_CASE("cuda process: moves between GPUs" * doctest::skip()) {
  const std::vector<sa::Device> all = sa::devices();
  REQUIRE(all.size() == 8);
  CHECK((all[3].memory == 0 && all[4].memory == 1));
  const Array x = numbers({300'000});  // in parts of the way through the host
  const Array far = sa::device_put(x, all[6]);
  CHECK(bits(far) == bits(x));
  CHECK(bits(sa::device_put(far * 2, all[1])) == bits(x + x));
  const auto half = [&](int first) {
    const std::vector<sa::Device> some(all.begin() + first, all.begin() + first + 4);
    return sa::NamedSharding(sa::Mesh({{4}, some}, {"x"}), P("x"));
  };
  for (const int first : {0, 2, 4}) CHECK(bits(sa::device_put(x, half(first)) * 2) == bits(x + x));
  CHECK(bits(sa::device_put(sa::device_put(x, half(0)), half(4))) == bits(x));
  // A value that is overwritten in its place, again and again, while the other GPU still reads it.
  const auto turn = sa::jit([](const Array& v) { return sa::roll(v, 4) + 1; });
  Array here = sa::device_put(numbers({8}), sa::NamedSharding(sa::Mesh({{8}, all}, {"x"}), P("x")));
  const std::vector<float> start = here.to_vector<float>();
  for (int k = 0; k < 40; k++) here = turn(std::move(here));
  const std::vector<float> end = here.to_vector<float>();
  for (std::size_t k = 0; k < 8; k++) CHECK(end[k] == start[k] + 40);
}

TEST_CASE("cuda process: threads with programs over the same GPUs" * doctest::skip()) {
  const auto want = looped(mesh_on("cpu")), want_backwards = looped(backwards_on("cpu"));
  const int rounds = sa::testing::full_scale() ? 40 : 6;
  const auto work = [&](int thread) {
    for (int k = 0; k < rounds; k++) {
      const bool forwards = (thread + k) % 2 == 0;
      if (looped(forwards ? mesh_on("cuda") : backwards_on("cuda")) != (forwards ? want : want_backwards))
        return false;
    }
    return true;
  };
  std::vector<std::future<bool>> all;
  for (int t = 0; t < 4; t++) all.push_back(std::async(std::launch::async, work, t));
  for (auto& t : all) CHECK(t.get());
}

TEST_CASE("cuda process: the GPU of a thread" * doctest::skip()) {
  const sa::cuda::Driver& d = fake_control().driver();
  const auto stays = [&](const auto& f) {
    for (const int before : {0, 1}) {
      REQUIRE(d.set_device(before) == 0);
      f();
      int now = -1;
      REQUIRE(d.get_device(&now) == 0);
      CHECK(now == before);
    }
  };
  Array x;
  stays([&] { x = put(numbers({8, 8}), "cuda", P("x")); });
  const auto f = sa::jit([](const Array& v) { return sa::sum(v, 0) * 2; });
  for (int run = 0; run < 4; run++) stays([&] { f(x); });  // launch by launch, then as graphs
  stays([&] { bits(f(x)); });
  stays([&] { f(x).block_until_ready(); });
  stays([&] { bits(sa::device_put(x, sa::devices("cuda")[7])); });
  stays([&] {
    const sa::default_device there(sa::devices("cuda")[5]);
    sa::block_until_ready(sa::full({1 << 20}, 1.0f));
  });
  const auto until = sa::jit([](const Array& v) {
    return sa::while_loop([](const Array& c) { return sa::sum(c) < 100; },
                          [](const Array& c) { return c + 1; }, v);
  });
  stays([&] { until(x); });
  fake_control().set_capacity(0);  // what nobody has use for goes back, on every GPU
  stays([&] { CHECK(thrown([] { sa::block_until_ready(sa::full({1 << 22}, 2.0f)); }) != ""); });
}

TEST_CASE("cuda process: GPUs that cannot read each other" * doctest::skip()) {
  const Array x = numbers({8, 8});
  const Array cut = platform_test::put(x, mesh_on("cuda"), P("x"));
  CHECK(bits(cut * 2) == bits(x + x));  // nobody needs what others have
  for (int repeat = 0; repeat < 2; repeat++)
    CHECK(
        thrown([&] { sa::eval(sa::sum(cut, 0)); }) ==
        "load: GPUs 0, 1 cannot all read each other's memory, so that NCCL must move their tiles. cuda: the "
        "fake GPU has no NCCL. SHARDARRAY_FAKE_NCCL gives it one. Set it. Or put the program on devices of "
        "GPUs "
        "that can (`nvidia-smi topo -p2p r`), or of one.");
  const Array one = sa::device_put(x, sa::devices("cuda")[7]);
  CHECK(bits(sa::sum(one, 0)) == bits(sa::sum(x, 0)));  // each by itself
}

TEST_CASE("cuda process: a GPU is lost beside others" * doctest::skip()) {
  const auto f = sa::jit([](const Array& v) { return sa::sum(v, 0) * 2; });
  const Array x = put(numbers({8, 8}), "cuda", P("x"));
  const Array fine = f(x);
  bits(fine);
  fake_control().fail_work(3, 700);
  const std::string text = thrown([&] {
    for (int k = 0; k < 20; k++) bits(f(x));
  });
  CHECK_MESSAGE(text.find("All that is on the GPU is lost. Restart the process.") != text.npos, text);
  CHECK(thrown([&] { bits(f(x)); }).find("is lost") != std::string::npos);
  const sa::default_device cpu(sa::devices("cpu")[0]);
  CHECK((sa::ones({4}) * 2).to_vector<float>() ==
        std::vector<float>(4, 2));  // other platforms are not concerned
}

TEST_CASE("cuda GPUs: programs over 2, 4 and 8 GPUs have the CPU's bits") {
  for (const char* const gpus : {"SHARDARRAY_FAKE_GPUS=2 SHARDARRAY_CUDA_LOGICAL_DEVICES=4",
                                 "SHARDARRAY_FAKE_GPUS=4 SHARDARRAY_CUDA_LOGICAL_DEVICES=2",
                                 "SHARDARRAY_FAKE_GPUS=8 SHARDARRAY_CUDA_LOGICAL_DEVICES=1"})
    on_fake_in_any_order("cuda process: numbers over several GPUs", gpus);
}
TEST_CASE("cuda GPUs: what moves between them, and threads that use the same ones") {
  const std::string two = "SHARDARRAY_FAKE_GPUS=2 SHARDARRAY_CUDA_LOGICAL_DEVICES=4";
  on_fake_in_any_order("cuda process: moves between GPUs", two);
  on_fake("cuda process: threads with programs over the same GPUs", two);
}
TEST_CASE("cuda GPUs: the library's calls leave the thread's GPU as it was") {
  const std::string two = "SHARDARRAY_FAKE_GPUS=2 SHARDARRAY_CUDA_LOGICAL_DEVICES=4";
  on_fake("cuda process: the GPU of a thread", two);
  on_fake("cuda process: the GPU of a thread", two + " SHARDARRAY_FAKE_PEERS=0 SHARDARRAY_FAKE_NCCL=there");
}
TEST_CASE("cuda GPUs: a program whose GPUs cannot read each other is refused; one that is lost is named") {
  const std::string two = "SHARDARRAY_FAKE_GPUS=2 SHARDARRAY_CUDA_LOGICAL_DEVICES=4";
  on_fake("cuda process: GPUs that cannot read each other", two + " SHARDARRAY_FAKE_PEERS=0");
  on_fake("cuda process: a GPU is lost beside others", two);
}

}  // namespace cuda_gpus_test

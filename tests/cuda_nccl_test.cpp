// Programs over several fake GPUs that NCCL joins (tests/cuda/fake_nccl.cpp), in separate processes: results, the calls of the library,
// and the process after a failure or a hang.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cuda_fake.h"
#include "cuda_gpus.h"
#include "process_helpers.h"
#include "scale.h"
#include "shardarray/linalg.h"

namespace cuda_nccl_test {

namespace sa = shardarray;
using namespace sa::testing;
using platform_test::bits;
using platform_test::mesh_on;
using platform_test::put;
using program_test::numbers;
using sa::Array;
using sa::P;
using sa::gpus_test::near;

namespace {

enum Kind { sends, receives, all_reduces, all_gathers, reduce_scatters };
std::uint64_t calls(int kind) { return fake_control().nccl_calls(kind); }

const std::string joined = "SHARDARRAY_CPU_DEVICES=8 SHARDARRAY_FAKE_NCCL=there ",
                  blind = "SHARDARRAY_FAKE_PEERS=0 ";
std::string over(int gpus) {
  return joined + "SHARDARRAY_FAKE_GPUS=" + std::to_string(gpus) +
         " SHARDARRAY_CUDA_LOGICAL_DEVICES=" + std::to_string(8 / gpus) + " ";
}

}  // namespace

// ---------------------------------------------------------------- results
TEST_CASE("cuda process: numbers over GPUs that NCCL joins" * doctest::skip()) {
  const bool reach = std::getenv("SHARDARRAY_FAKE_PEERS") == nullptr;
  sa::gpus_test::check_numbers();
  program_test::check_received(
      sa::jit([](const Array& a) {
        const Array rows = sa::filter_shard(a * 2, sa::NamedSharding(mesh_on("cuda"), P("y", "x")));
        return sa::filter_shard(rows + sa::sum(rows, 0), sa::NamedSharding(mesh_on("cuda"), P()));
      }),
      put(numbers({8, 8}), mesh_on("cuda"), P("x", "y")));
  CHECK((calls(sends) > 0) == !reach);
  CHECK(calls(sends) == calls(receives));
  CHECK(fake_control().nccl_misuse() == 0);
}

namespace {

const std::vector<P>& specs() {
  static const std::vector<P> all = {P(),         P("x"),           P("y"),           P("x", "y"),
                                     P("y", "x"), P(sa::none, "x"), P(sa::none, "y"), P(sa::none)};
  return all;
}

}  // namespace

TEST_CASE("cuda process: values move between random layouts over GPUs that NCCL joins" * doctest::skip()) {
  std::mt19937 random(31);
  const sa::Mesh mesh = mesh_on("cuda");
  const auto spec = [&] { return specs()[random() % specs().size()]; };
  // Uneven tiles, empty ones, values without elements.
  const std::vector<sa::Shape> shapes = {{13, 6}, {3, 5}, {1, 7}, {0, 4}, {16, 8}};
  const int repeats = full_scale() ? 8 : 1;
  for (const sa::DType t :
       {sa::bool_, sa::int8, sa::uint16, sa::float16, sa::bfloat16, sa::float32, sa::int64, sa::float64})
    for (const sa::Shape& shape : shapes)
      for (int k = 0; k < repeats; k++) {
        const Array x = numbers(shape, t);
        Array there = put(x, mesh, spec());
        for (int step = 0; step < 4; step++) there = put(there, mesh, spec());
        CHECK(bits(there) == bits(x));
      }
  for (const sa::DType t : {sa::int8, sa::int32, sa::uint64, sa::float32, sa::float64})
    for (const sa::Shape& shape : shapes)
      for (const int dim : {0, 1}) {
        const sa::reproducible on(true);
        const Array x = numbers(shape, t);
        const P at = spec();
        const auto same = [&](const auto& f) {
          CHECK(bits(f(put(x, mesh, at))) == bits(f(put(x, mesh_on("cpu"), at))));
        };
        same([&](const Array& a) { return sa::sum(a, dim); });
        same([&](const Array& a) { return sa::prod(a, dim); });
        same([&](const Array& a) { return sa::cumsum(a, dim); });
        same([&](const Array& a) { return sa::any(a > 4, dim); });
        same([&](const Array& a) { return sa::all(a < 4, dim); });
        if (shape[static_cast<std::size_t>(dim)] == 0) continue;
        same([&](const Array& a) { return sa::max(a, dim); });
        same([&](const Array& a) { return sa::min(a, dim); });
      }
  CHECK(fake_control().nccl_misuse() == 0);
}

TEST_CASE("cuda process: collectives of whole tiles" * doctest::skip()) {
  const auto asked = [&](Kind kind, std::size_t gpus, sa::DType t, const auto& f) {
    const auto made = [&](const char* platform) {
      std::vector<sa::Device> some = sa::devices(platform);
      some.resize(gpus);
      const Array x = put(numbers({static_cast<std::int64_t>(gpus), 8, 3}, t),
                          sa::Mesh({{static_cast<std::int64_t>(gpus)}, some}, {"x"}), P("x"));
      return bits(sa::pmap(f, {.axis_name = "i", .devices = some})(x));
    };
    const std::uint64_t before = calls(kind);
    const auto got = made("cuda");
    const std::uint64_t now = calls(kind);
    CHECK(got == made("cpu"));
    return now - before;
  };
  const auto psum = [](const Array& x) { return sa::psum(x, "i"); };
  const auto pmax = [](const Array& x) { return sa::pmax(x, "i"); };
  const auto scatter = [](const Array& x) { return sa::psum_scatter(x, "i", {.axis = 0, .tiled = true}); };
  for (const bool ordered : {false, true}) {
    const sa::reproducible on(ordered);
    CHECK(asked(all_reduces, 8, sa::float32, psum) ==
          (ordered ? 3 * 8 : 8));  // in pairs, of which there is one sum
    CHECK(asked(all_reduces, 4, sa::float64, psum) == (ordered ? 2 * 4 : 4));
    CHECK(asked(reduce_scatters, 8, sa::float32, scatter) == (ordered ? 0 : 8));
    CHECK(asked(all_reduces, 2, sa::float32, psum) == 2);
    CHECK(asked(reduce_scatters, 8, sa::int32, scatter) == 8);
    CHECK(asked(all_reduces, 8, sa::int32, psum) == 8);
    CHECK(asked(all_reduces, 8, sa::int32, pmax) == 8);
    CHECK(asked(all_reduces, 8, sa::float32, pmax) == 0);  // NaN would be lost
  }
  const sa::Mesh all({{8}, sa::devices("cuda")}, {"x"});
  for (const sa::DType t : {sa::bool_, sa::int16, sa::bfloat16, sa::float32, sa::float64}) {
    const std::uint64_t before = calls(all_gathers);
    const Array x = numbers({16, 3}, t);
    CHECK(bits(put(put(x, all, P("x")), all, P())) == bits(x));
    CHECK(calls(all_gathers) == before + 8);
  }
  // Its order is its own: the sums are near the CPU's, and with `reproducible` they are the CPU's.
  std::vector<float> values(8 * 100);
  for (std::size_t k = 0; k < values.size(); k++) values[k] = std::sin(static_cast<float>(k * k)) * 1e3f;
  const Array x = sa::array(values, {8, 100});
  const auto total = [&](const char* platform, bool ordered) {
    const sa::reproducible on(ordered);
    const sa::Mesh mesh({{8}, sa::devices(platform)}, {"x"});
    return std::vector<platform_test::Bits>{bits(sa::sum(put(x, mesh, P("x")), 0))};
  };
  const std::uint64_t before = calls(all_reduces);
  const auto ours = total("cuda", false), theirs = total("cpu", false);
  CHECK(calls(all_reduces) == before + 8);
  CHECK(ours != theirs);
  CHECK(near(ours, theirs));
  CHECK(total("cuda", true) == total("cpu", true));
  // One line of the kind is enough: it is all one program.
  const auto mixed = sa::jit([](const Array& v) {
    const Array plain = sa::sum(v, 0);
    const sa::reproducible on(true);
    return sa::stack({plain, sa::sum(v, 0)}, 0);
  });
  const auto both = [&](const char* platform) {
    return bits(mixed(put(x, sa::Mesh({{8}, sa::devices(platform)}, {"x"}), P("x"))));
  };
  CHECK(both("cuda") == both("cpu"));
  CHECK(fake_control().nccl_misuse() == 0);
}

TEST_CASE(
    "cuda NCCL: programs over 2, 4 and 8 GPUs have the CPU's bits, whether they can read each other or not") {
  for (const int gpus : {2, 4, 8})
    for (const std::string& peers : {std::string(), blind})
      if (full_scale() || (gpus == 2) == peers.empty())
        on_fake_in_any_order("cuda process: numbers over GPUs that NCCL joins", over(gpus) + peers);
}
TEST_CASE("cuda NCCL: values move between random layouts, uneven and empty tiles, of all dtypes") {
  for (const int gpus : {2, 8})
    if (full_scale() || gpus == 8)
      on_fake("cuda process: values move between random layouts over GPUs that NCCL joins",
              over(gpus) + blind);
}
TEST_CASE("cuda NCCL: what the kit runs on several GPUs has the CPU's numbers") {
  on_fake("cuda several GPUs: numbers", over(2));
  for (const std::string& peers : {std::string(), blind})
    on_fake("cuda several GPUs: large tiles", over(8) + peers + "SHARDARRAY_FAKE_NCCL_LEAST=65536");
}
TEST_CASE("cuda NCCL: collectives of whole tiles are its own, but for float sums of reproducible lines") {
  for (const std::string& peers : {std::string(), blind})
    on_fake("cuda process: collectives of whole tiles", over(8) + peers);
}
TEST_CASE("cuda NCCL: what moves between GPUs, loops, donation and threads go as by reading") {
  for (const char* const name :
       {"cuda process: numbers over several GPUs", "cuda process: moves between GPUs",
        "cuda process: threads with programs over the same GPUs"})
    on_fake(name, over(2) + blind);
}

// ---------------------------------------------------------------- failures
namespace {

const auto& sum_of() {
  static const auto f = sa::jit([](const Array& v) { return sa::sum(v, 0) * 2; });
  return f;
}
/// The host waits for a value that needs all of the GPUs.
Array summed_until(const Array& x) {
  static const auto f = sa::jit([](const Array& v) {
    return sa::while_loop([](const Array& c) { return sa::sum(sa::square(c)) < 1e6f; },
                          [](const Array& c) { return c * 2 + sa::sum(c, 0); }, v);
  });
  return f(x);
}
const auto& inverted() {
  static const auto f =
      sa::jit([](const Array& v) { return sa::linalg::inv(sa::eye(8) * 1e3f + sa::sum(v, 0)); });
  return f;
}
Array over_all() { return put(numbers({8, 8}), sa::Mesh({{8}, sa::devices("cuda")}, {"x"}), P("x")); }
const std::string lost = " All that is on the GPU is lost. Restart the process.";

/// The GPUs of the process are gone, and nothing else.
void check_lost(const std::string& text, const std::string& says) {
  CHECK_MESSAGE(text.find(says) != text.npos, text);
  CHECK_MESSAGE(text.find("GPUs 0, 1") != text.npos, text);
  CHECK_MESSAGE(text.find("cuda_nccl_test.cpp:") != text.npos, text);
  CHECK_MESSAGE(text.find(lost) == text.size() - lost.size(), text);
  CHECK(thrown([] { bits(over_all()); }).find(lost) != std::string::npos);
  CHECK(fake_control().nccl_misuse() == 0);
  const sa::default_device cpu(sa::devices("cpu")[0]);
  CHECK((sa::ones({4}) * 2).to_vector<float>() == std::vector<float>(4, 2));
}

}  // namespace

TEST_CASE("cuda process: no communicator can be made" * doctest::skip()) {
  const Array x = over_all();
  int failed = 0;
  for (; failed < 1000; failed++) {
    fake_control().fail_nccl(failed, 3);
    const std::string text = thrown([&] { bits(sum_of()(x)); });
    if (text.find("the making of a communicator") == text.npos) break;
    CHECK_MESSAGE(text.find("load: GPUs 0, 1 cannot all read each other's memory") == 0, text);
    CHECK_MESSAGE(text.find("unhandled error") != text.npos, text);
    CHECK_MESSAGE(text.find(lost) == text.npos, text);
    CHECK(bits(sum_of()(sa::device_put(x, sa::devices("cuda")[0]))).size() == 8);  // each GPU by itself
  }
  CHECK(failed > 10);  // the identifier, the group, each rank, how far they are
}

TEST_CASE("cuda process: no memory for a communicator" * doctest::skip()) {
  constexpr int unhandled_cuda_error = 1, calls_of_making = 10;
  const Array x = numbers({2, 8});
  const auto want = bits(sum_of()(x));
  for (int k = 0; k < calls_of_making; k++) {  // of two other GPUs each time
    const sa::Mesh two({{2},
                        {sa::devices("cuda")[static_cast<std::size_t>(k % 2)],
                         sa::devices("cuda")[static_cast<std::size_t>(2 + k / 2)]}},
                       {"x"});
    const Array there = put(x, two, P("x"));
    sa::block_until_ready(sa::full({1 << 23}, 1.0f));
    const std::size_t before = fake_control().held();
    const std::uint64_t asked = calls(-1);
    fake_control().fail_nccl(k, unhandled_cuda_error);
    CHECK(bits(sum_of()(there)) == want);
    CHECK(calls(-1) > asked + calls_of_making);
    CHECK(fake_control().held() < before - (std::size_t{16} << 20));  // what nobody used
  }
  CHECK(fake_control().nccl_misuse() == 0);
}

TEST_CASE("cuda process: a call of NCCL fails" * doctest::skip()) {
  const Array x = over_all();
  const auto want = bits(sum_of()(x));
  fake_control().fail_nccl(std::atoi(std::getenv("SHARDARRAY_TEST_CALL")), 3);
  bool same = true;
  const std::string text = thrown([&] {
    for (int k = 0; k < 2; k++) same = same && bits(sum_of()(x)) == want;
  });
  CHECK(same);
  if (text.empty()) MESSAGE("no call failed");
  else check_lost(text, "unhandled error");
}

// Milliseconds in which communicators are made, too: sanitizers take their time.
static int deadline() { return is_sanitized() ? 3000 : 300; }

TEST_CASE("cuda process: a rank never comes" * doctest::skip()) {
  const Array x = over_all();
  bits(sum_of()(x));
  bits(summed_until(x));
  bits(inverted()(x));
  fake_control().miss_rank(1);
  // Whoever waits for whatever on one of the GPUs: an end, a copy to the host, room for more, a value that decides how the program
  // goes on, what the host computes with.
  const std::string how = std::getenv("SHARDARRAY_TEST_WAIT");
  const std::string text = thrown([&] {
    if (how == "end") sum_of()(x).block_until_ready();
    else if (how == "copy") bits(sum_of()(x));
    else if (how == "decision") summed_until(x);
    else if (how == "host") inverted()(x);
    else
      for (int k = 0; k < 100; k++) sum_of()(x);
  });
  check_lost(text, "does not come to an end");
  const char* const timeout = std::getenv("SHARDARRAY_COMM_TIMEOUT");
  const std::string had = fmt::format("it had {:g} s from when all of them were there",
                                      timeout != nullptr ? std::atof(timeout) : deadline() / 1000.0);
  CHECK_MESSAGE(text.find(had) != text.npos, text);
}

TEST_CASE("cuda process: a rank differs" * doctest::skip()) {
  const Array x = over_all(),
              wide = put(numbers({8, 24}), sa::Mesh({{8}, sa::devices("cuda")}, {"x"}), P("x"));
  bits(sum_of()(x));
  bits(sum_of()(wide));
  const bool in_order = std::string(std::getenv("SHARDARRAY_TEST_DIFFERENCE")) == "count";
  fake_control().differ_rank(1, in_order ? FakeDifference::count : FakeDifference::order);
  const std::string text = thrown([&] {
    const Array first = sum_of()(x), second = sum_of()(wide);
    bits(first);
    bits(second);
  });
  check_lost(text, std::getenv("SHARDARRAY_TEST_SAYS"));
}

TEST_CASE("cuda process: NCCL breaks while it works" * doctest::skip()) {
  const Array x = over_all();
  bits(sum_of()(x));
  fake_control().hold(true);
  const Array y = sum_of()(x);
  sa::eval(y);
  fake_control().break_nccl(6);
  fake_control().hold(false);
  check_lost(thrown([&] { bits(y); }), "cuda: NCCL failed on GPUs 0, 1");
}

TEST_CASE("cuda process: a GPU fails beside ranks that wait for it" * doctest::skip()) {
  const Array x = over_all();
  bits(sum_of()(x));
  fake_control().fail_work(5, 700);
  const std::string text = thrown([&] {
    for (int k = 0; k < 20; k++) bits(sum_of()(x));
  });
  CHECK_MESSAGE(text.find("cudaErrorIllegalAddress") != text.npos, text);
  CHECK_MESSAGE(text.find(lost) == text.size() - lost.size(), text);
}

TEST_CASE("cuda process: small tiles" * doctest::skip()) {
  const sa::Mesh all({{8}, sa::devices("cuda")}, {"x"});
  const auto asked = [&](std::int64_t columns) {
    const Array x = numbers({8, columns}, sa::int32);
    const std::uint64_t before = calls(all_reduces);
    CHECK(bits(sa::sum(put(x, all, P("x")), 0)) == bits(sa::sum(put(x, mesh_on("cpu"), P("x")), 0)));
    return calls(all_reduces) - before;
  };
  const bool reach = std::getenv("SHARDARRAY_FAKE_PEERS") == nullptr;
  CHECK(asked(256) == 8);  // 1024 bytes a rank
  CHECK(asked(255) == (reach ? 0 : 8));
}

TEST_CASE("cuda process: NCCL that makes no communicator" * doctest::skip()) {
  const Array x = over_all();
  const std::string text = thrown([&] { bits(sum_of()(x)); });
  CHECK_MESSAGE(text.find(std::getenv("SHARDARRAY_TEST_SAYS")) != text.npos, text);
  CHECK_MESSAGE(text.find("load: GPUs 0, 1, 2, 3, 4, 5, 6, 7 cannot all read each other's memory") == 0,
                text);
}

TEST_CASE("cuda process: GPUs that read each other go without NCCL" * doctest::skip()) {
  for (int k = 0; k < 3; k++)
    CHECK(bits(sum_of()(over_all())) == bits(sum_of()(put(numbers({8, 8}), mesh_on("cpu"), P("x")))));
  const auto f = sa::jit([](const Array& v) { return sa::sum(v, 0) + 1; });
  const std::uint64_t asked = calls(-1);
  CHECK(bits(f(over_all())).size() == 8);
  CHECK(calls(-1) ==
        asked);  // what failed once is not tried for each program: it may take its whole time again
}

TEST_CASE("cuda NCCL: every call that fails gives one clear error, and nothing hangs") {
  on_fake("cuda process: no communicator can be made", over(2) + blind);
  on_fake("cuda process: no memory for a communicator", over(8) + blind);
  const int step = full_scale() ? 1 : 5;
  for (const std::string& settings : {over(2) + blind, over(8)})
    for (int call = 0;; call += step) {
      const std::string text = text_on_fake(
          "cuda process: a call of NCCL fails",
          "SHARDARRAY_PLATFORM=cuda " + settings + "SHARDARRAY_TEST_CALL=" + std::to_string(call));
      if (text.find("no call failed") == text.npos) continue;
      CHECK(call > 10);
      break;
    }
}
TEST_CASE(
    "cuda NCCL: a rank that never comes, an error on the way and a GPU that fails are found out while "
    "something is waited for") {
  const std::string quick = fmt::format("SHARDARRAY_FAKE_NCCL_DEADLINE={} ", deadline());
  on_fake(
      "cuda process: a rank never comes",
      over(8) + fmt::format("SHARDARRAY_COMM_TIMEOUT={} SHARDARRAY_TEST_WAIT=end", is_sanitized() ? 3 : 1));
  for (const std::string& settings : {over(2) + blind, over(8)}) {
    for (const char* const how : {"end", "copy", "room", "decision", "host"})
      on_fake("cuda process: a rank never comes", settings + quick + "SHARDARRAY_TEST_WAIT=" + how);
    on_fake("cuda process: NCCL breaks while it works", settings);
    on_fake("cuda process: a GPU fails beside ranks that wait for it", settings);
  }
}
TEST_CASE(
    "cuda NCCL: ranks that differ in counts or in their order are found out, whether NCCL says so or not") {
  // Sums are messages over two GPUs with several devices each, and collectives over eight.
  for (const auto& [settings, says] : {std::pair(over(2) + blind, "a message has another size"),
                                       std::pair(over(8), "ranks differ in order, count or type")})
    for (const char* const how : {"count", "order"})
      for (const bool silent : {false, true})
        on_fake("cuda process: a rank differs",
                settings + "SHARDARRAY_TEST_DIFFERENCE=" + how +
                    (silent ? " SHARDARRAY_FAKE_NCCL=silent SHARDARRAY_FAKE_NCCL_DEADLINE=300 "
                              "SHARDARRAY_TEST_SAYS='does not come to an end'"
                            : " SHARDARRAY_FAKE_NCCL_DEADLINE=20000 SHARDARRAY_TEST_SAYS='invalid usage (" +
                                  std::string(says) + ")'"));
}
TEST_CASE("cuda NCCL: GPUs that read each other move small tiles by kernels") {
  for (const std::string& peers : {std::string(), blind})
    on_fake("cuda process: small tiles", over(8) + peers + "SHARDARRAY_FAKE_NCCL_LEAST=1024");
}
TEST_CASE(
    "cuda NCCL: where it is not there or makes no communicator, GPUs read each other, or the message says "
    "so") {
  const std::string none = "cuda process: NCCL that makes no communicator",
                    go = "cuda process: GPUs that read each other go without NCCL";
  const std::string stuck = over(8) + "SHARDARRAY_FAKE_NCCL_DEADLINE=200 SHARDARRAY_FAKE_NCCL=stuck ",
                    twice = over(8) + "SHARDARRAY_FAKE_NCCL=duplicate ",
                    missing = over(8) + "SHARDARRAY_FAKE_NCCL= ";
  on_fake(none, stuck + blind + "SHARDARRAY_TEST_SAYS='does not come to an end'");
  on_fake(none, twice + blind + "SHARDARRAY_TEST_SAYS='Duplicate GPU detected'");
  on_fake(none, missing + blind + "SHARDARRAY_TEST_SAYS='the fake GPU has no NCCL'");
  for (const std::string& settings : {stuck, twice, missing}) {
    const std::string text = text_on_fake(go, "SHARDARRAY_PLATFORM=cuda " + settings);
    CHECK_MESSAGE(count_of("GPUs read each other's tiles by kernels of the library.", text) == 1, text);
  }
}

}  // namespace cuda_nccl_test

// Printed kernels on the fake GPU, whose NVRTC is the host's compiler: processes of their own.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>

#include "cuda_fake.h"
#include "platform_programs.h"

namespace cuda_printed_test {

namespace sa = shardarray;
using namespace sa::testing;
using platform_test::mesh_on;

namespace {

constexpr const char* interpreted = "Loops on CUDA devices run in the interpreter.";
constexpr const char* devices_of_both = "SHARDARRAY_CPU_DEVICES=8 SHARDARRAY_CUDA_LOGICAL_DEVICES=8 ";

std::uint64_t launches_of_printed() { return fake_control().printed_launches(); }

std::string text_of(const std::string& name, const std::string& settings) {
  return text_on_fake(name, devices_of_both + settings);
}

}  // namespace

TEST_CASE("cuda process: printed kernels at once" * doctest::skip()) {
  CHECK(platform_test::training(mesh_on("cuda")) == platform_test::training(mesh_on("cpu")));
  CHECK(launches_of_printed() > 0);
}

TEST_CASE("cuda process: printed kernels later" * doctest::skip()) {
  const auto step = sa::jit([](const sa::Array& a) { return sa::tanh(a) * 2 + sa::sum(a, 0); });
  const sa::Array x = program_test::numbers({8, 6});
  const auto bits_on = [&](const char* platform) {
    return platform_test::bits(step(platform_test::put(x, mesh_on(platform), sa::P("x", "y"))));
  };
  const auto want = bits_on("cpu");
  for (int run = 0; run < 3; run++) {
    CHECK(launches_of_printed() == 0);
    CHECK(bits_on("cuda") == want);
  }
  const auto start = std::chrono::steady_clock::now();
  while (launches_of_printed() == 0 && std::chrono::steady_clock::now() - start < std::chrono::minutes(5)) {
    CHECK(bits_on("cuda") == want);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(launches_of_printed() > 0);
  CHECK(bits_on("cuda") == want);
}

TEST_CASE("cuda process: ends while kernels are compiled" * doctest::skip()) {
  const auto twice = sa::jit([](const sa::Array& a) { return a * 2; });
  const sa::Array x = platform_test::put(program_test::numbers({8, 6}), mesh_on("cuda"), sa::P("x"));
  for (int run = 0; run < 3; run++) twice(x).to_vector<float>();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it is at work
}

TEST_CASE("cuda process: no printed kernels" * doctest::skip()) {
  const auto want = platform_test::training(mesh_on("cpu"));
  for (int run = 0; run < 3; run++) CHECK(platform_test::training(mesh_on("cuda")) == want);
  CHECK(launches_of_printed() == 0);
}

TEST_CASE(
    "cuda printed kernels: compiled before the first run, or while the interpreting ones run, with the CPU's "
    "bits") {
  const TemporaryFolder cache;
  const std::string kept = "SHARDARRAY_CACHE_DIR=" + cache.path + " ";
  text_of("cuda process: printed kernels at once",
          kept + "SHARDARRAY_CODEGEN=always SHARDARRAY_FAKE_NVRTC=1");
  // From the disk, where nothing compiles any more.
  const std::string again = text_of("cuda process: printed kernels at once",
                                    kept + "SHARDARRAY_CODEGEN=always SHARDARRAY_FAKE_NVRTC=broken");
  CHECK(count_of(interpreted, again) == 0);
  text_of("cuda process: printed kernels later",
          "SHARDARRAY_CACHE_DIR= SHARDARRAY_CODEGEN=on SHARDARRAY_FAKE_NVRTC=1");
}

TEST_CASE("cuda printed kernels: a process may end while they are compiled") {
  text_of("cuda process: ends while kernels are compiled",
          "SHARDARRAY_CACHE_DIR= SHARDARRAY_CODEGEN=on SHARDARRAY_FAKE_NVRTC=1");
}

TEST_CASE(
    "cuda printed kernels: without NVRTC, or where it fails, programs are interpreted, which is said once") {
  const std::string name = "cuda process: no printed kernels",
                    always = "SHARDARRAY_CACHE_DIR= SHARDARRAY_CODEGEN=always ";
  const std::string missing = text_of(name, always);
  CHECK_MESSAGE(
      count_of("shardarray: cuda: the fake GPU has no NVRTC. SHARDARRAY_FAKE_NVRTC gives it one. Set "
               "it. Loops on CUDA devices run in the interpreter.\n",
               missing) == 1,
      missing);
  const std::string broken = text_of(name, always + "SHARDARRAY_FAKE_NVRTC=broken");
  CHECK_MESSAGE(
      count_of("shardarray: cuda: NVRTC does not compile a printed kernel: NVRTC_ERROR_COMPILATION: log. "
               "Printed kernels compile for every GPU that NVRTC 13 knows. Please report this. Loops on CUDA "
               "devices run in the interpreter.\n",
               broken) == 1,
      broken);
  for (const std::string& text : {missing, broken}) CHECK(count_of(interpreted, text) == 1);
  const std::string off = text_of(name, "SHARDARRAY_CODEGEN=off SHARDARRAY_FAKE_NVRTC=1");
  CHECK(count_of(interpreted, off) == 0);
}

}  // namespace cuda_printed_test

// What the environment decides: each variable in processes of their own.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cpu/codegen/codegen.h"
#include "process_helpers.h"
#include "program_of.h"
#include "runtime/object_cache.h"
#include "runtime/pool.h"
#include "shardarray/shardarray.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
/// LeakSanitizer may not look into a process with other rights than its user's, and fails there.
extern "C" int __lsan_is_turned_off() { return geteuid() != getuid(); }
#endif

namespace promises_environment_test {

namespace sa = shardarray;
namespace fs = std::filesystem;
using program_test::numbers;
using sa::Array;
using sa::P;

namespace {

const std::string own_program = fs::canonical("/proc/self/exe").string();

/// A process of this program, or of a copy, that runs one test case; `settings` as env takes them. What it says.
std::string process(const std::string& name, const std::string& settings,
                    const std::string& program = own_program) {
  const auto ended = sa::testing::run_case(name, settings, program);
  CHECK_MESSAGE(ended.status == 0, ended.text);
  CHECK_MESSAGE(ended.text.find("1 passed | 0 failed |") != std::string::npos, ended.text);
  return ended.text;
}
sa::Sharding eight(const P& spec) { return sa::NamedSharding(sa::make_mesh({{"x", 8}}), spec); }

}  // namespace

TEST_CASE("promises process: devices and workers" * doctest::skip()) {
  const char* const devices = std::getenv("SHARDARRAY_CPU_DEVICES");
  const char* const workers = std::getenv("SHARDARRAY_THREADS");
  CHECK(sa::device_count() == std::atoi(devices));
  CHECK(sa::ThreadPool::instance().worker_count() == std::atoi(workers));
  CHECK(sa::sum(sa::ones({1000})).item<float>() == 1000);
}
TEST_CASE("promises process: denormals" * doctest::skip()) {
  const auto product = [] { return (sa::full({4}, 1e-30f) * 1e-12).to_vector<float>()[0]; };
  CHECK(product() == 0);
  const sa::flush_denormals off(false);
  CHECK(product() > 0);
}
TEST_CASE("promises: SHARDARRAY_FLUSH_DENORMALS is the default of lines") {
  process("promises process: denormals", "SHARDARRAY_FLUSH_DENORMALS=1");
}

TEST_CASE("promises process: replicas" * doctest::skip()) {
  const Array x = sa::jit([](const Array& v) { return v * 2; })(sa::device_put(numbers({6}), eight(P())));
  const bool shared = std::getenv("SHARDARRAY_SHARE_REPLICAS") == std::string("1");
  CHECK(sa::value_of(x)->buffers.size() == (shared ? 1 : 8));
}
TEST_CASE("promises process: a program" * doctest::skip()) {
  const auto f = sa::jit([](const Array& v) { return sa::sum(sa::exp(v * 0) + v); });
  for (int k = 0; k < 4; k++)
    CHECK(f(sa::device_put(sa::arange(64.0), eight(P("x")))).item<float>() == 64 + 63 * 32);
}

TEST_CASE("promises: the environment names devices, workers and separate replicas") {
  process("promises process: devices and workers", "SHARDARRAY_CPU_DEVICES=3 SHARDARRAY_THREADS=2");
  process("promises process: devices and workers", "SHARDARRAY_CPU_DEVICES=8 SHARDARRAY_THREADS=5");
  process("promises process: replicas", "SHARDARRAY_SHARE_REPLICAS=0");
  process("promises process: replicas", "SHARDARRAY_SHARE_REPLICAS=1");
}

TEST_CASE("promises process: nonsense at the first use" * doctest::skip()) {
  for (int use = 0; use < 2; use++) {
    std::string said;
    const int line = __LINE__ + 2;
    try {
      (sa::ones({3}) + 1).block_until_ready();
    } catch (const sa::Error& e) { said = e.what(); }
    CHECK_MESSAGE(said.find("SHARDARRAY_") != said.npos, said);
    CHECK_MESSAGE(said.find("promises_environment_test.cpp:" + std::to_string(line)) != said.npos, said);
  }
}
TEST_CASE("promises: nonsense in the environment is said with the line of the first use") {
  for (const char* settings : {"SHARDARRAY_CPU_DEVICES=abc", "SHARDARRAY_PLATFORM=tpu"})
    process("promises process: nonsense at the first use", settings);
}

TEST_CASE("promises: SHARDARRAY_DEBUG=2 prints programs, SHARDARRAY_CODEGEN takes three words") {
  const std::string name = "promises process: a program";
  const std::string quiet = process(name, "-u SHARDARRAY_DEBUG"), said = process(name, "SHARDARRAY_DEBUG=2");
  CHECK(quiet.find("simplify") == std::string::npos);
  for (const char* pass : {"simplify", "partition", "fuse"})
    CHECK_MESSAGE(said.find(pass) != said.npos, pass);
  for (const char* word : {"on", "off", "always"}) process(name, std::string("SHARDARRAY_CODEGEN=") + word);
}

TEST_CASE("promises: compiled kernels are kept where the environment says") {
  const char* const names[] = {"SHARDARRAY_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
  std::vector<std::optional<std::string>> before;
  for (const char* n : names) {
    const char* const text = std::getenv(n);
    before.push_back(text ? std::optional<std::string>(text) : std::nullopt);
  }
  const auto folder = [&](std::vector<const char*> set) {
    for (std::size_t k = 0; k < 3; k++) set[k] ? setenv(names[k], set[k], 1) : unsetenv(names[k]);
    return sa::object_cache_folder();
  };
  CHECK(folder({"/a/b", "/c", "/d"}) == "/a/b");
  CHECK(folder({"", "/c", "/d"}).empty());  // nowhere
  CHECK(folder({nullptr, "/c", "/d"}) == "/c/shardarray");
  CHECK(folder({nullptr, nullptr, "/d"}) == "/d/.cache/shardarray");
  for (std::size_t k = 0; k < 3; k++)
    before[k] ? setenv(names[k], before[k]->c_str(), 1) : unsetenv(names[k]);
}

TEST_CASE("promises process: a folder is named" * doctest::skip()) {
  const bool other_rights = geteuid() != getuid();
  CHECK((sa::object_cache_folder() == "/a/b") == !other_rights);
  CHECK((sa::code_plugin_path() == "/c/d/libshardarray_llvm.so") == !other_rights);
  std::printf("other rights: %d\n", other_rights);
}
TEST_CASE("promises: a program with other rights than its user's heeds no folder of the environment") {
  const std::string name = "promises process: a folder is named",
                    set = "SHARDARRAY_CACHE_DIR=/a/b SHARDARRAY_PLUGIN_DIR=/c/d ";
  CHECK(process(name, set).find("other rights: 0") != std::string::npos);
  if (getuid() != 0) {
    MESSAGE("skipped: only root may make such a program");
    return;
  }
  const auto folder = fs::temp_directory_path() / ("shardarray_rights_" + std::to_string(getpid()));
  fs::create_directory(folder);
  const auto program = folder / "program";
  fs::copy_file(own_program, program);
  constexpr uid_t nobody = 65534;
  REQUIRE(chown(program.c_str(), nobody, nobody) == 0);
  REQUIRE(chmod(program.c_str(), 04755) == 0);
  // LeakSanitizer may not look into a process with other rights.
  CHECK(process(name, set + "ASAN_OPTIONS=detect_leaks=0 ", program).find("other rights: 1") !=
        std::string::npos);
  fs::remove_all(folder);
}

}  // namespace promises_environment_test

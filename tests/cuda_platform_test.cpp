// The default platform, in processes whose driver and plug-in are fakes (tests/cuda/); what a memory limit refuses, and messages about
// a GPU that cannot be used.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "cuda/fake_code.h"
#include "cuda_fake.h"
#include "platform_programs.h"
#include "runtime/devices.h"
#include "runtime/object_cache.h"
#include "runtime/plugin.h"
#include "shardarray/shardarray.h"

namespace cuda_platform_test {

namespace sa = shardarray;
namespace fs = std::filesystem;
using sa::Array;
using sa::testing::count_of;
using sa::testing::fake_control;
using sa::testing::fake_folder;
using sa::testing::fake_process;
using sa::testing::TemporaryFolder;
using sa::testing::text_on_fake;
using sa::testing::thrown;

namespace {

bool is_open(const std::string& library) {
  return dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD) != nullptr;
}
bool driver_is_open() { return is_open("libcuda.so.1"); }
bool plugin_is_open() { return is_open(sa::plugin_path("cuda")); }

/// The settings of a process whose libcuda.so.1 is the one in `folder`, and which says nothing of the CPU's devices.
std::string with_driver(const std::string& folder = fake_folder()) {
  return "SHARDARRAY_CPU_DEVICES= SHARDARRAY_CUDA_LOGICAL_DEVICES=2 SHARDARRAY_CODEGEN=off "
         "LD_LIBRARY_PATH='" +
         folder + "'\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\" ";
}
std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The plug-in of the fakes, but for the hash of what it was built with.
void write_plugin_of_another_build(const std::string& path) {
  std::string other = contents(fake_folder() + "/libshardarray_cuda.so");
  const std::uint64_t own = sa::abi_hash();
  const std::string_view hash(reinterpret_cast<const char*>(&own), sizeof own);
  REQUIRE(other.find(hash) != other.npos);
  for (std::size_t at = other.find(hash); at != other.npos; at = other.find(hash, at)) other[at]++;
  std::ofstream(path, std::ios::binary) << other;
}

constexpr const char* default_case = "cuda process: the default platform";
/// What the process says of its default platform, where it says nothing else.
std::string quiet_default(const std::string& settings) {
  const std::string text = text_on_fake(default_case, settings);
  CHECK_MESSAGE(text.find("shardarray: ") == text.npos, text);
  const std::size_t at = text.find("default: ");
  return at == text.npos ? text : text.substr(at + 9, text.find('\n', at) - at - 9);
}
constexpr const char* two_gpu_devices = "2 of cuda, driver 1, plug-in 1";
constexpr const char* no_gpu = "1 of cpu, driver 1, plug-in 0";
constexpr const char* not_looked_for = " of cpu, driver 0, plug-in 0";

/// The CPU is used, and why no GPU is said once.
void check_said(const std::string& settings, const std::string& why) {
  const std::string text = text_on_fake(default_case, settings);
  CHECK_MESSAGE(text.find("default: 1 of cpu, ") != text.npos, text);
  CHECK_MESSAGE(count_of("shardarray: " + why, text) == 1, text);
  CHECK_MESSAGE(
      count_of(" Arrays go to the CPU; SHARDARRAY_PLATFORM=cpu says so without this message.\n", text) == 1,
      text);
  CHECK_MESSAGE(count_of("shardarray: ", text) == 1, text);
}

}  // namespace

// ---------------------------------------------------------------- the default platform

TEST_CASE("cuda process: the default platform" * doctest::skip()) {
  CHECK_FALSE(driver_is_open());  // the library has been opened, and nothing was asked of it yet
  CHECK_FALSE(plugin_is_open());
  std::vector<std::future<std::string>> first;
  for (int k = 0; k < 4; k++)
    first.push_back(std::async(std::launch::async, [k] {
      if (k % 2 == 0) return (sa::ones({3}) + 1).devices()[0].platform;
      return sa::devices()[0].platform;
    }));
  const std::string platform = sa::devices()[0].platform;
  for (auto& f : first) CHECK(f.get() == platform);
  CHECK((sa::arange(4.0) * 2).to_vector<float>() == std::vector<float>{0, 2, 4, 6});
  CHECK(sa::ones({2}).devices()[0] == sa::devices(platform)[0]);
  std::printf("default: %d of %s, driver %d, plug-in %d\n", sa::device_count(), platform.c_str(),
              driver_is_open() ? 1 : 0, plugin_is_open() ? 1 : 0);
}

TEST_CASE("cuda process: CPU devices are numbered" * doctest::skip()) {
  sa::set_cpu_device_count(3);
  std::printf("default: %d of %s, %d of the CPU\n", sa::device_count(), sa::devices()[0].platform.c_str(),
              static_cast<int>(sa::devices("cpu").size()));
}

TEST_CASE("cuda process: CPU devices are numbered late" * doctest::skip()) {
  CHECK(sa::devices("cpu").size() == 1);  // says nothing of the default
  CHECK(sa::devices()[0].platform == "cuda");
  std::printf("late: %s\n", thrown([] { sa::set_cpu_device_count(1); }).c_str());
}

TEST_CASE("cuda default: a GPU where there is one and nothing else was said, looked for at the first use") {
  CHECK(quiet_default(with_driver()) == two_gpu_devices);
  CHECK(quiet_default(with_driver() + "SHARDARRAY_PLATFORM=") == two_gpu_devices);
  CHECK(quiet_default(with_driver() + "SHARDARRAY_PLATFORM=cpu") == "1" + std::string(not_looked_for));
  CHECK(quiet_default(with_driver() + "SHARDARRAY_PLATFORM=gpu") == "2 of cuda, driver 0, plug-in 1");
}

TEST_CASE("cuda default: a machine without a GPU is silent, and opens no plug-in") {
  CHECK(quiet_default(with_driver() + "SHARDARRAY_FAKE_GPUS=0") == no_gpu);
  CHECK(quiet_default(with_driver() + "SHARDARRAY_FAKE_CUINIT=100") == no_gpu);  // CUDA_ERROR_NO_DEVICE
  CHECK(quiet_default(with_driver() + "SHARDARRAY_FAKE_CUINIT=34") == no_gpu);   // a stub for linking
  const TemporaryFolder folder;
  std::ofstream(folder.path + "/libcuda.so.1") << "no library\n";
  CHECK(quiet_default(with_driver(folder.path)) == "1" + std::string(not_looked_for));
}

TEST_CASE(
    "cuda default: a number of CPU devices asks for the CPU, unless SHARDARRAY_PLATFORM says otherwise") {
  CHECK(quiet_default(with_driver() + "SHARDARRAY_CPU_DEVICES=3") == "3" + std::string(not_looked_for));
  CHECK(quiet_default(with_driver() + "SHARDARRAY_CPU_DEVICES=3 SHARDARRAY_PLATFORM=cuda") ==
        "2 of cuda, driver 0, plug-in 1");
  const std::string call = "cuda process: CPU devices are numbered";
  const auto says = [&](const std::string& settings, const std::string& line) {
    const std::string text = text_on_fake(call, with_driver() + settings);
    CHECK_MESSAGE(text.find("default: " + line + "\n") != text.npos, text);
  };
  says("", "3 of cpu, 3 of the CPU");
  says("SHARDARRAY_PLATFORM=cuda", "2 of cuda, 3 of the CPU");
  const std::string late = text_on_fake("cuda process: CPU devices are numbered late", with_driver());
  CHECK_MESSAGE(late.find("late: set_cpu_device_count: 1 device asked for, but arrays go to a GPU already. "
                          "The call says that they go to the CPU, before the first use of a device. Call it "
                          "first in main, or name the platform in SHARDARRAY_PLATFORM.\n") != late.npos,
                late);
  const std::string told =
      text_on_fake("cuda process: CPU devices are numbered late", with_driver() + "SHARDARRAY_PLATFORM=cuda");
  CHECK_MESSAGE(told.find("late: \n") != told.npos, told);  // their number already
}

TEST_CASE("cuda default: a GPU that is there and cannot be used is named once, and the CPU is used") {
  const TemporaryFolder folder;
  const std::string plugin = folder.path + "/libshardarray_cuda.so",
                    there = with_driver() + "SHARDARRAY_PLUGIN_DIR='" + folder.path + "' ";
  check_said(there, "cuda: " + plugin + ": cannot open shared object file: No such file or directory.");
  std::ofstream(plugin) << "no library\n";
  check_said(there, "cuda: " + plugin + ": file too short.");
  write_plugin_of_another_build(plugin);
  check_said(there, "cuda: " + plugin + " was built for another library: it has version ");
  check_said(with_driver() + "SHARDARRAY_FAKE_ARCHITECTURE=7",
             "cuda: GPU 0 (fake GPU) has compute capability 7.0.");
  check_said(with_driver() + "SHARDARRAY_FAKE_DRIVER=12040", "cuda: the NVIDIA driver is for CUDA 12.4.");
  check_said(with_driver() + "SHARDARRAY_FAKE_COUNT_STATUS=802",
             "cuda: cudaGetDeviceCount failed: cudaErrorSystemNotReady, as the test wants it.");
  check_said(with_driver() + "SHARDARRAY_FAKE_CUINIT=803 SHARDARRAY_FAKE_DRIVER=0",
             "cuda: this machine has no NVIDIA driver.");  // one that does not work is asked about
  check_said(with_driver() + "SHARDARRAY_CUDA_LOGICAL_DEVICES=no",
             "environment: SHARDARRAY_CUDA_LOGICAL_DEVICES=no is not understood.");
}

TEST_CASE("cuda: a plug-in of another build is refused by devices() and by SHARDARRAY_PLATFORM") {
  const TemporaryFolder folder;
  const std::string plugin = folder.path + "/libshardarray_cuda.so", case_name = "cuda process: no devices",
                    there = "SHARDARRAY_PLUGIN_DIR='" + folder.path + "' ";
  write_plugin_of_another_build(plugin);
  const std::string refusal = "cuda: " + plugin + " was built for another library: it has version ",
                    advice = ". Both must come from one build. Install them together.\n";
  const auto lines = [&](const std::string& begin, const std::string& text) {
    int n = 0;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
      n += line.starts_with(begin + refusal) && (line + "\n").ends_with(advice) ? 1 : 0;
    return n;
  };
  const std::string asked = fake_process(case_name, there).text;  // the CPU is not concerned
  CHECK_MESSAGE((lines("said: ", asked) == 2 && asked.find("and: \n") != asked.npos), asked);
  const std::string chosen = fake_process(case_name, there + "SHARDARRAY_PLATFORM=cuda").text;
  CHECK_MESSAGE((lines("said: ", chosen) == 2 && lines("and: ", chosen) == 1), chosen);
}

// ---------------------------------------------------------------- memory

TEST_CASE("cuda process: a limit of memory" * doctest::skip()) {
  const std::vector<sa::Device> all = sa::devices("cuda");
  constexpr std::size_t limit = std::size_t{24} << 20;
  const auto on = [&](std::size_t k, std::int64_t mib) {
    const sa::default_device here(all[k]);
    return sa::block_until_ready(sa::full({mib << 18}, 1.0f));
  };
  const auto refusal = [](const Array& x) { return thrown([&] { sa::block_until_ready(x); }); };
  Array a = on(0, 8), b = on(0, 12);
  const std::string text = refusal(a * 2);
  CHECK_MESSAGE(
      text.find(
          "block_until_ready: the limit SHARDARRAY_CUDA_MEMORY_LIMIT=25165824 refused 8388608 bytes for "
          "cuda:0 (") == 0,
      text);
  CHECK_MESSAGE(text.find("or spread the arrays over more memory, or raise the limit. The memory was for the "
                          "result f32[2097152] of '") != text.npos,
                text);
  CHECK_MESSAGE(text.find("cuda_platform_test.cpp:") != text.npos, text);
  const Array other = on(1, 20);  // each device has its own
  CHECK(refusal(other * 2).find(" refused 20971520 bytes for cuda:1 (") != std::string::npos);
  CHECK(a.to_vector<float>()[77] == 1);  // nothing was lost
  a = {};
  CHECK(on(0, 8).to_vector<float>()[77] == 1);  // what was given back serves again,
  b = {};
  CHECK(on(0, 20).to_vector<float>()[77] == 1);  // in other sizes too
  for (int k = 0; k < 2; k++) CHECK(sa::backend("cuda").memory_stats(k).held <= limit);
}

TEST_CASE("cuda process: memory that placements are chosen for" * doctest::skip()) {
  const char* const limit = std::getenv("SHARDARRAY_CUDA_MEMORY_LIMIT");
  CHECK(sa::backend("cuda").target().device_memory ==
        (limit != nullptr
             ? std::stoll(limit)
             : (std::int64_t{1} << 39) - (std::int64_t{3} << 28)));  // 1.5 GiB of a GPU are CUDA's
}

TEST_CASE("cuda: placements are chosen for what each logical device may hold") {
  const std::string name = "cuda process: memory that placements are chosen for",
                    both = "SHARDARRAY_PLATFORM=cuda SHARDARRAY_CUDA_LOGICAL_DEVICES=2 ";
  text_on_fake(name, both);
  text_on_fake(name, both + "SHARDARRAY_CUDA_MEMORY_LIMIT=25165824");
}

TEST_CASE("cuda: each logical device has a limit of memory, if the environment names one") {
  const std::string name = "cuda process: a limit of memory",
                    both = "SHARDARRAY_PLATFORM=cuda SHARDARRAY_CUDA_LOGICAL_DEVICES=2 ";
  text_on_fake(name, both + "SHARDARRAY_CUDA_MEMORY_LIMIT=25165824");
  const std::string text = fake_process("cuda process: no devices", "SHARDARRAY_CUDA_MEMORY_LIMIT=1000").text;
  CHECK_MESSAGE(
      text.find("said: environment: SHARDARRAY_CUDA_MEMORY_LIMIT=1000 is not understood. It must be "
                "an integer from 2097152 to 140737488355328. Correct the variable or unset it.\n") !=
          text.npos,
      text);
}

TEST_CASE("cuda process: what memory was for" * doctest::skip()) {
  const sa::default_device there(sa::devices("cuda")[1]);
  const Array x = sa::block_until_ready(sa::ones({1 << 20})), small = sa::block_until_ready(sa::ones({}));
  const auto message = [](const std::string& function, const auto& f) {
    const std::string text = thrown(f);
    CHECK_MESSAGE(text.find(function + ": the system refused ") == 0, text);
    const std::size_t at = text.find("The memory was for ");
    return at == text.npos ? text : text.substr(at);
  };
  fake_control().set_capacity(0);
  const std::vector<float> host(1 << 20);
  CHECK(message("array", [&] { sa::eval(sa::array(host, {1 << 20})); }) ==
        "The memory was for f32[1048576] of the host.");
  const std::string result = message("block_until_ready", [&] { sa::block_until_ready(x * 2); });
  CHECK_MESSAGE(result.find("The memory was for the result f32[1048576] of '") == 0, result);
  CHECK_MESSAGE(result.find("cuda_platform_test.cpp:") != result.npos, result);
  const auto sorted = sa::jit([](const Array& v) { return sa::sum(sa::sort(v * 3) * v); });
  const std::string between = message("jit", [&] { sa::block_until_ready(sorted(x)); });
  CHECK_MESSAGE(between.find("The memory was for values between the steps of '") == 0, between);
}
TEST_CASE("cuda: memory that is short is named with what it was for") {
  text_on_fake("cuda process: what memory was for", "SHARDARRAY_CUDA_LOGICAL_DEVICES=2");
}

// ---------------------------------------------------------------- several platforms, damaged files

TEST_CASE("cuda process: arrays of two platforms" * doctest::skip()) {
  const Array here = sa::device_put(sa::ones({4}), sa::devices("cpu")[1]);
  const Array there = sa::device_put(sa::ones({4}), sa::devices("cuda")[1]);
  CHECK(thrown([&] { sa::eval(here + there); }) ==
        "add: Received incompatible devices for one computation. Got an array f32[4] with device ids [1] "
        "on platform cpu and an array f32[4] with device ids [1] on platform cuda. All committed arrays, "
        "constraints and outputs of one computation must be on the same devices. Move one with "
        "device_put(x, sharding).");
  const sa::Mesh both({{2}, {sa::devices("cpu")[0], sa::devices("cuda")[1]}}, {"x"});
  CHECK(
      thrown([&] { sa::device_put(here, sa::NamedSharding(both, sa::P("x"))); }) ==
      "devices: cpu:0 and cuda:1 are in one sharding. All devices of a sharding are of one platform. Choose "
      "devices of one, and move arrays with device_put.");
  CHECK((there + sa::device_put(here, there.devices()[0])).to_vector<float>() == std::vector<float>(4, 2));
  CHECK((there + 1).to_vector<float>() == std::vector<float>(4, 2));  // a literal goes along
}
TEST_CASE("cuda: a program is on one platform; arrays of another are refused, or moved by device_put") {
  text_on_fake("cuda process: arrays of two platforms",
               "SHARDARRAY_CPU_DEVICES=2 SHARDARRAY_CUDA_LOGICAL_DEVICES=2");
}

namespace {

constexpr const char* interpreted = "Loops on CUDA devices run in the interpreter.";
constexpr const char* printed_case = "cuda process: printed kernels at once";
/// Kernels are compiled before the first run, and kept in the folder.
std::string kept_in(const TemporaryFolder& cache) {
  return "SHARDARRAY_CPU_DEVICES=8 SHARDARRAY_CUDA_LOGICAL_DEVICES=8 SHARDARRAY_CODEGEN=always "
         "SHARDARRAY_FAKE_NVRTC=1 SHARDARRAY_CACHE_DIR=" +
         cache.path + " ";
}
/// Calls f with the path of each of the kernels there, of which there are some.
template <class F> void for_kernels(const TemporaryFolder& cache, const F& f) {
  int kernels = 0;
  for (const auto& entry : fs::recursive_directory_iterator(cache.path)) {
    if (!entry.is_regular_file() || entry.file_size() < 1000) continue;
    f(entry.path().string());
    kernels++;
  }
  CHECK(kernels > 0);
}

}  // namespace

TEST_CASE("cuda: a kernel on the disk that is damaged is compiled again") {
  const TemporaryFolder cache;
  text_on_fake(printed_case, kept_in(cache));
  for_kernels(cache, [](const std::string& path) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(fs::file_size(path) / 2));
    file << "damaged";
  });
  // Where nothing compiles there is no kernel then,
  const std::string broken =
      text_on_fake("cuda process: no printed kernels", kept_in(cache) + "SHARDARRAY_FAKE_NVRTC=broken");
  CHECK_MESSAGE(count_of(interpreted, broken) == 1, broken);
  const std::string text = text_on_fake(printed_case, kept_in(cache));  // else a new one
  CHECK_MESSAGE(count_of(interpreted, text) == 0, text);
}

TEST_CASE("cuda process: one printed kernel" * doctest::skip()) {
  const auto f = sa::jit([](const Array& a) { return sa::tanh(a) * 2; });
  const auto on = [&](const char* platform) {
    return platform_test::bits(f(platform_test::put(platform_test::numbers({8, 6}), platform, sa::P("x"))));
  };
  CHECK(on("cuda") == on("cpu"));
  std::printf("printed: %d\n", fake_control().printed_launches() > 0 ? 1 : 0);
}

TEST_CASE("cuda: a kernel on the disk that is whole and that the driver refuses is compiled again") {
  const TemporaryFolder cache;
  const auto printed = [&](const std::string& compiler, const std::string& launches) {
    const std::string text = text_on_fake("cuda process: one printed kernel",
                                          kept_in(cache) + "SHARDARRAY_FAKE_NVRTC=" + compiler);
    CHECK_MESSAGE(text.find("printed: " + launches + "\n") != text.npos, text);
    return text;
  };
  printed("1", "1");
  const std::string refused = sa::testing::fake_code("no object");
  sa::ObjectCache files(cache.path);
  for_kernels(cache, [&](const std::string& path) {
    const std::string file = contents(path);
    constexpr std::size_t header = 32;  // of which the second word is the length of the key
    std::uint64_t key_bytes = 0;
    std::memcpy(&key_bytes, file.data() + 8, sizeof key_bytes);
    const std::string key = file.substr(header, key_bytes);
    REQUIRE(files.path(key) == path);
    files.put(key, refused);
    const auto found = files.find(key);
    CHECK((found && std::string(found->begin(), found->end()) == refused));
  });
  const std::string broken = printed("broken", "0");
  CHECK_MESSAGE(count_of("NVRTC does not compile a printed kernel", broken) == 1, broken);
  CHECK_MESSAGE(count_of(interpreted, broken) == 1, broken);
  for (const char* const compiler : {"1", "broken"})  // what is compiled takes its place
    CHECK(count_of(interpreted, printed(compiler, "1")) == 0);
}

}  // namespace cuda_platform_test

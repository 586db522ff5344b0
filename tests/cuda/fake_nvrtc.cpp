// NVRTC for the host: the system's compiler makes shared objects of the texts. It exists if SHARDARRAY_FAKE_NVRTC is set, and refuses
// every text if that is `broken`, those of whole programs if it is `loops`.
#include <stdlib.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cuda/libraries.h"
#include "cuda/one_kernel.h"
#include "cuda/program_text.h"
#include "fake_code.h"
#include "shardarray/error.h"
#include "tests/sources.h"

namespace shardarray::cuda {
namespace {

struct FakeNvrtcProgram {
  std::string text, code;
};
FakeNvrtcProgram& program_of(Nvrtc::Program p) { return *reinterpret_cast<FakeNvrtcProgram*>(p); }

/// Empty where the text does not compile.
std::string shared_object_of(const std::string& text) {
  std::string folder = (std::filesystem::temp_directory_path() / "shardarray-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return "";
  std::ofstream(folder + "/k.cpp") << text;
  const char* const compiler = std::getenv("CXX");
  const std::string source = testing::source_folder();
  const std::string command =
      std::string(compiler != nullptr ? compiler : "c++") +
      " -std=c++20 -O0 -ffp-contract=off -fno-math-errno -fno-trapping-math -shared -fPIC -I" + source +
      " -I" + source + "/src -I" + source + "/include " + folder + "/k.cpp -o " + folder + "/k.so";
  std::string bytes;
  if (std::system(command.c_str()) == 0) {
    std::ifstream in(folder + "/k.so", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return bytes;
}

/// As the real one it makes static objects while it works; when they go it must not be at work.
std::atomic<int> at_work = 0;
struct MadeAtWork {
  ~MadeAtWork() {
    if (at_work != 0) std::abort();
  }
};

int compile_by_host(Nvrtc::Program p, int, const char* const*) {
  at_work++;
  static const MadeAtWork first;
  FakeNvrtcProgram& program = program_of(p);
  const std::string setting = std::getenv("SHARDARRAY_FAKE_NVRTC");
  const bool broken = setting == "broken" ||
                      (setting == "loops" && program.text.find(program_kernel_name) != std::string::npos);
  const std::string object = broken ? "" : shared_object_of(program.text);
  at_work--;
  if (object.empty()) return 6;
  program.code = testing::fake_code(object);
  return 0;
}

const Nvrtc fake_nvrtc = {
    .version = [](int* major, int* minor) { return (*major = 0, *minor = 0, 0); },  // no code of a real one
    .create_program =
        [](Nvrtc::Program* to, const char* text, const char*, int, const char* const*, const char* const*) {
          *to = reinterpret_cast<Nvrtc::Program>(new FakeNvrtcProgram{text, ""});
          return 0;
        },
    .compile_program = compile_by_host,
    .get_program_log_size = [](Nvrtc::Program, std::size_t* bytes) { return (*bytes = 4, 0); },
    .get_program_log = [](Nvrtc::Program, char* to) { return (std::memcpy(to, "log", 4), 0); },
    .get_cubin_size = [](Nvrtc::Program p,
                         std::size_t* bytes) { return (*bytes = program_of(p).code.size(), 0); },
    .get_cubin =
        [](Nvrtc::Program p, char* to) {
          std::memcpy(to, program_of(p).code.data(), program_of(p).code.size());
          return 0;
        },
    .destroy_program =
        [](Nvrtc::Program* p) {
          delete &program_of(*p);
          *p = nullptr;
          return 0;
        },
    .get_error_string = [](int) { return "NVRTC_ERROR_COMPILATION"; },
};

}  // namespace

const Nvrtc& nvrtc() {
  if (std::getenv("SHARDARRAY_FAKE_NVRTC") == nullptr)
    throw CompileError("cuda: the fake GPU has no NVRTC. SHARDARRAY_FAKE_NVRTC gives it one. Set it.");
  return fake_nvrtc;
}

/// SHARDARRAY_FAKE_ONE_KERNEL=0: programs are never one kernel.
const OneKernelLimits& one_kernel_limits() {
  static const OneKernelLimits limits = [] {
    OneKernelLimits most;
    const char* const text = std::getenv("SHARDARRAY_FAKE_ONE_KERNEL");
    if (text != nullptr && std::strcmp(text, "0") == 0) most.steps = 0;
    return most;
  }();
  return limits;
}

}  // namespace shardarray::cuda

#include "cuda/compiler.h"

#include <fmt/format.h>

#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

class NvrtcProgram {
 public:
  NvrtcProgram(const Nvrtc& compiler, const std::string& text) : compiler_(compiler) {
    std::vector<const char*> names, texts;
    for (const PrintedHeader& h : printed_headers()) {
      names.push_back(h.name);
      texts.push_back(h.text);
    }
    check(compiler.create_program(&program_, text.c_str(), "kernels.cu", static_cast<int>(names.size()),
                                  texts.data(), names.data()),
          "nvrtcCreateProgram");
  }
  ~NvrtcProgram() {
    if (program_ != nullptr) compiler_.destroy_program(&program_);
  }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;

  std::vector<char> compile(const std::vector<std::string>& options) {
    std::vector<const char*> list;
    list.reserve(options.size());
    for (const std::string& o : options) list.push_back(o.c_str());
    const int status = compiler_.compile_program(program_, static_cast<int>(list.size()), list.data());
    if (status != 0)
      throw CompileError(fmt::format(
          "cuda: NVRTC does not compile a printed kernel: {}: {}. Printed kernels compile for every GPU that "
          "NVRTC 13 knows. Please report this.",
          compiler_.get_error_string(status), log()));
    std::size_t bytes = 0;
    check(compiler_.get_cubin_size(program_, &bytes), "nvrtcGetCUBINSize");
    std::vector<char> cubin(bytes);
    check(compiler_.get_cubin(program_, cubin.data()), "nvrtcGetCUBIN");
    return cubin;
  }

  std::string log() const {
    std::size_t bytes = 0;
    if (compiler_.get_program_log_size(program_, &bytes) != 0 || bytes < 2) return "it gives no reason";
    std::string text(bytes, 0);
    if (compiler_.get_program_log(program_, text.data()) != 0) return "it gives no reason";
    text.resize(text.find_last_not_of(std::string("\0\n.", 3)) + 1);
    return text;
  }

 private:
  void check(int status, const char* call) const {
    if (status != 0)
      throw CompileError(
          fmt::format("cuda: {} failed: {}. Kernels are compiled by NVRTC 13. Install one that "
                      "works.",
                      call, compiler_.get_error_string(status)));
  }
  const Nvrtc& compiler_;
  Nvrtc::Program program_ = nullptr;
};

}  // namespace

std::string architecture_name(int major, int minor) { return fmt::format("sm_{}{}", major, minor); }

std::vector<std::string> compiler_options(const std::string& architecture) {
  return {"--gpu-architecture=" + architecture,
          "--std=c++20",
          "--fmad=false",
          "--ftz=false",
          "--prec-div=true",
          "--prec-sqrt=true",
          "--device-as-default-execution-space"};
}

std::string code_key(const Nvrtc& compiler, const std::string& text, const std::string& architecture) {
  int major = 0, minor = 0;
  compiler.version(&major, &minor);
  std::string key = fmt::format("NVRTC {}.{}\n", major, minor);
  for (const std::string& o : compiler_options(architecture)) key += o + "\n";
  for (const PrintedHeader& h : printed_headers()) key += fmt::format("{}\n{}\n", h.name, h.text);
  return key + text;
}

std::vector<char> compile_text(const Nvrtc& compiler, const std::string& text,
                               const std::string& architecture, std::string* report) {
  NvrtcProgram program(compiler, text);
  std::vector<std::string> options = compiler_options(architecture);
  if (report != nullptr) options.emplace_back("--ptxas-options=-v");
  std::vector<char> cubin = program.compile(options);
  if (report != nullptr) *report = program.log();
  return cubin;
}

}  // namespace shardarray::cuda

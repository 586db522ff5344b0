#include "cuda/libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

/// Where toolkits stand. A program that runs with other rights than its user's heeds no variable.
std::vector<std::string> toolkit_folders() {
  std::vector<std::string> folders;
  for (const char* const variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* const home = secure_getenv(variable); home != nullptr && *home == '/')
      folders.push_back(std::string(home) + "/lib64");
  folders.emplace_back("/usr/local/cuda/lib64");
  return folders;
}

template <class F> void find_call(F*& to, void* library, const char* name) {
  to = reinterpret_cast<F*>(dlsym(library, name));
  if (to == nullptr)
    throw CompileError(
        fmt::format("cuda: {}. It is part of NVRTC 13. Install one that is whole.", dlerror()));
}

Nvrtc open_nvrtc() {
  void* const library = open_cuda_library("libnvrtc.so.13", "Kernels are compiled by NVRTC 13");
  Nvrtc n{};
  find_call(n.version, library, "nvrtcVersion");
  find_call(n.create_program, library, "nvrtcCreateProgram");
  find_call(n.compile_program, library, "nvrtcCompileProgram");
  find_call(n.get_program_log_size, library, "nvrtcGetProgramLogSize");
  find_call(n.get_program_log, library, "nvrtcGetProgramLog");
  find_call(n.get_cubin_size, library, "nvrtcGetCUBINSize");
  find_call(n.get_cubin, library, "nvrtcGetCUBIN");
  find_call(n.destroy_program, library, "nvrtcDestroyProgram");
  find_call(n.get_error_string, library, "nvrtcGetErrorString");
  return n;
}

}  // namespace

void* open_cuda_library(const std::string& name, const char* purpose) {
  // Never closed: what it made may be in use after everything else.
  constexpr int how = RTLD_NOW | RTLD_LOCAL;
  if (void* const library = dlopen(name.c_str(), how)) return library;
  const std::string why = dlerror();
  for (const std::string& folder : toolkit_folders())
    if (void* const library = dlopen((folder + "/" + name).c_str(), how)) return library;
  throw CompileError(
      fmt::format("cuda: {}. {}. Install CUDA 13's toolkit, or name its folder in CUDA_HOME.", why, purpose));
}

const Nvrtc& nvrtc() {
  static const Nvrtc table = open_nvrtc();
  return table;
}

}  // namespace shardarray::cuda

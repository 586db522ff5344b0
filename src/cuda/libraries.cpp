#include "cuda/libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

/// Where toolkits are installed. A setuid program ignores the variables.
std::vector<std::string> toolkit_folders() {
  std::vector<std::string> folders;
  for (const char* const variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* const home = secure_getenv(variable); home != nullptr && *home == '/')
      folders.push_back(std::string(home) + "/lib64");
  folders.emplace_back("/usr/local/cuda/lib64");
  return folders;
}

/// Looks up a library's calls by name.
class LibraryCalls {
 public:
  LibraryCalls(void* library, const char* product) : library_(library), product_(product) {}
  template <class F> void find(F*& to, const char* name) const {
    to = reinterpret_cast<F*>(dlsym(library_, name));
    if (to == nullptr)
      throw CompileError(
          fmt::format("cuda: {}. It is part of {}. Install one that is whole.", dlerror(), product_));
  }

 private:
  void* library_;
  const char* product_;
};

Nvrtc open_nvrtc() {
  const LibraryCalls calls(open_cuda_library("libnvrtc.so.13", "Kernels are compiled by NVRTC 13"),
                           "NVRTC 13");
  Nvrtc n{};
  calls.find(n.version, "nvrtcVersion");
  calls.find(n.create_program, "nvrtcCreateProgram");
  calls.find(n.compile_program, "nvrtcCompileProgram");
  calls.find(n.get_program_log_size, "nvrtcGetProgramLogSize");
  calls.find(n.get_program_log, "nvrtcGetProgramLog");
  calls.find(n.get_cubin_size, "nvrtcGetCUBINSize");
  calls.find(n.get_cubin, "nvrtcGetCUBIN");
  calls.find(n.destroy_program, "nvrtcDestroyProgram");
  calls.find(n.get_error_string, "nvrtcGetErrorString");
  return n;
}

CublasLt open_cublas_lt() {
  const LibraryCalls calls(open_cuda_library("libcublasLt.so.13", "Large products are made by cuBLASLt 13"),
                           "cuBLASLt 13");
  CublasLt c{};
  calls.find(c.version, "cublasLtGetVersion");
  calls.find(c.create, "cublasLtCreate");
  calls.find(c.status_name, "cublasLtGetStatusName");
  // The functions of the same names without `_internal` are inline in the header, and call these.
  calls.find(c.product_init, "cublasLtMatmulDescInit_internal");
  calls.find(c.product_set, "cublasLtMatmulDescSetAttribute");
  calls.find(c.layout_init, "cublasLtMatrixLayoutInit_internal");
  calls.find(c.layout_set, "cublasLtMatrixLayoutSetAttribute");
  calls.find(c.preference_init, "cublasLtMatmulPreferenceInit_internal");
  calls.find(c.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  calls.find(c.find_algorithms, "cublasLtMatmulAlgoGetHeuristic");
  calls.find(c.check_algorithm, "cublasLtMatmulAlgoCheck");
  calls.find(c.multiply, "cublasLtMatmul");
  return c;
}

Nccl open_nccl() {
  const LibraryCalls calls(
      open_cuda_library("libnccl.so.2", "Tiles move between GPUs by NCCL", "Install NCCL 2.22 or newer"),
      "NCCL 2");
  Nccl n{};
  calls.find(n.get_version, "ncclGetVersion");
  calls.find(n.get_unique_id, "ncclGetUniqueId");
  calls.find(n.init_rank, "ncclCommInitRankConfig");
  calls.find(n.get_async_error, "ncclCommGetAsyncError");
  calls.find(n.abort, "ncclCommAbort");
  calls.find(n.get_error_string, "ncclGetErrorString");
  calls.find(n.get_last_error, "ncclGetLastError");
  calls.find(n.group_start, "ncclGroupStart");
  calls.find(n.group_end, "ncclGroupEnd");
  calls.find(n.send, "ncclSend");
  calls.find(n.receive, "ncclRecv");
  calls.find(n.all_reduce, "ncclAllReduce");
  calls.find(n.all_gather, "ncclAllGather");
  calls.find(n.reduce_scatter, "ncclReduceScatter");
  check_version(n);
  return n;
}

}  // namespace

void check_version(const Nccl& library) {
  int version = 0;
  library.get_version(&version);
  if (version < Nccl::least_version)
    throw CompileError(
        fmt::format("cuda: NCCL is of version {}.{}. Tiles move between GPUs by NCCL. Install NCCL "
                    "2.22 or newer.",
                    version / 10000, version / 100 % 100));
}

void* open_cuda_library(const std::string& name, const char* purpose, const char* remedy) {
  // Never closed: its objects may be in use until the very end.
  constexpr int how = RTLD_NOW | RTLD_LOCAL;
  if (void* const library = dlopen(name.c_str(), how)) return library;
  const std::string why = dlerror();
  for (const std::string& folder : toolkit_folders())
    if (void* const library = dlopen((folder + "/" + name).c_str(), how)) return library;
  throw CompileError(fmt::format("cuda: {}. {}. {}, or name its folder in CUDA_HOME.", why, purpose, remedy));
}

const Nvrtc& nvrtc() {
  static const Nvrtc table = open_nvrtc();
  return table;
}
const CublasLt& cublas_lt() {
  static const CublasLt table = open_cublas_lt();
  return table;
}
const Nccl& nccl() {
  static const Nccl table = open_nccl();
  return table;
}
const NcclLimits& nccl_limits() {
  static const NcclLimits limits;
  return limits;
}
const ProductLimits& product_limits() {
  static constexpr ProductLimits limits;
  return limits;
}

}  // namespace shardarray::cuda

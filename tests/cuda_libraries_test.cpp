// NVRTC, cuBLASLt and NCCL that lack one of their functions, each in turn: libraries of nothing but names, in separate processes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cuda/libraries.h"
#include "process_helpers.h"

namespace cuda_libraries_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

struct LibraryOfNames {
  std::string file, product;
  std::vector<std::string> calls;
};
const std::vector<LibraryOfNames>& all_libraries() {
  static const std::vector<LibraryOfNames> all = {
      {"libnvrtc.so.13",
       "NVRTC 13",
       {"nvrtcVersion", "nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize",
        "nvrtcGetProgramLog", "nvrtcGetCUBINSize", "nvrtcGetCUBIN", "nvrtcDestroyProgram",
        "nvrtcGetErrorString"}},
      {"libcublasLt.so.13",
       "cuBLASLt 13",
       {"cublasLtGetVersion", "cublasLtCreate", "cublasLtGetStatusName", "cublasLtMatmulDescInit_internal",
        "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutInit_internal",
        "cublasLtMatrixLayoutSetAttribute", "cublasLtMatmulPreferenceInit_internal",
        "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmulAlgoCheck",
        "cublasLtMatmul"}},
      {"libnccl.so.2",
       "NCCL 2",
       {"ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommGetAsyncError",
        "ncclCommAbort", "ncclGetErrorString", "ncclGetLastError", "ncclGroupStart", "ncclGroupEnd",
        "ncclSend", "ncclRecv", "ncclAllReduce", "ncclAllGather", "ncclReduceScatter"}}};
  return all;
}

/// The bytes of a shared object that has these calls. Each says that it is of version 2.28.9, as ncclGetVersion would.
std::string compiled_names(const std::vector<std::string>& calls, const std::string& folder) {
  const std::string source = folder + "/names.c", object = folder + "/names.so";
  {
    std::ofstream text(source);
    for (const std::string& name : calls) text << "int " << name << "(int* to) { return *to = 22809, 0; }\n";
  }
  const char* const compiler = std::getenv("CXX");
  const std::string command = std::string(compiler != nullptr ? compiler : "c++") + " -x c -shared -fPIC '" +
                              source + "' -o '" + object + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  std::ifstream in(object, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
/// The same, but for one of them, which has another name.
std::string without_call(std::string object, const std::string& name) {
  const std::string whole = std::string(1, '\0') + name + '\0';
  int renamed = 0;
  for (std::size_t at = object.find(whole); at != object.npos; at = object.find(whole, at), renamed++)
    object[at + 1] = '_';
  REQUIRE(renamed > 0);
  return object;
}

}  // namespace

TEST_CASE("cuda process: libraries" * doctest::skip()) {
  std::printf("said: %s\n", thrown([] { cuda::nvrtc(); }).c_str());
  std::printf("said: %s\n", thrown([] { cuda::cublas_lt(); }).c_str());
  std::printf("said: %s\n", thrown([] { cuda::nccl(); }).c_str());
}

TEST_CASE("cuda libraries: one that lacks a call is named with it") {
  const TemporaryFolder folder;
  std::vector<std::string> objects;
  std::size_t most = 0;
  for (const LibraryOfNames& l : all_libraries()) {
    objects.push_back(compiled_names(l.calls, folder.path));
    most = std::max(most, l.calls.size());
  }
  for (std::size_t k = 0; k <= most; k++) {  // at last they are whole
    std::string want;
    for (std::size_t n = 0; n < objects.size(); n++) {
      const LibraryOfNames& l = all_libraries()[n];
      const bool lacks = k < l.calls.size();
      const std::string path = folder.file(l.file);
      std::ofstream(path, std::ios::binary) << (lacks ? without_call(objects[n], l.calls[k]) : objects[n]);
      want += "said: ";
      if (lacks)
        want += "cuda: " + path + ": undefined symbol: " + l.calls[k] + ". It is part of " + l.product +
                ". Install one that is whole.";
      want += "\n";
    }
    const auto ended = run_case("cuda process: libraries", "LD_LIBRARY_PATH='" + folder.path +
                                                               "'\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"");
    CHECK(ended.status == 0);
    CHECK_MESSAGE(ended.text.find(want) != std::string::npos, ended.text << "\nin place of\n" << want);
  }
}

}  // namespace cuda_libraries_test

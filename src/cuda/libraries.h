// Libraries of CUDA's toolkit that are opened at run time, as tables of their calls: nobody needs them to link or to start.
#pragma once
#include <cstddef>
#include <string>

namespace shardarray::cuda {

/// NVRTC of CUDA 13, the compiler of texts. Each member is the library's call of that name, which gives 0 where all went well.
struct Nvrtc {
  using Program = struct NvrtcProgramObject*;
  int (*version)(int* major, int* minor);
  int (*create_program)(Program* to, const char* text, const char* name, int headers,
                        const char* const* header_texts, const char* const* header_names);
  int (*compile_program)(Program program, int options, const char* const* option);
  int (*get_program_log_size)(Program program, std::size_t* bytes);  ///< with the zero at its end
  int (*get_program_log)(Program program, char* to);
  int (*get_cubin_size)(Program program, std::size_t* bytes);
  int (*get_cubin)(Program program, char* to);
  int (*destroy_program)(Program* program);
  const char* (*get_error_string)(int status);
};

/// Opens it at the first call: by its name, else in `lib64` of CUDA_HOME, of CUDA_PATH, of /usr/local/cuda. Throws CompileError
/// where it is not there, each time.
const Nvrtc& nvrtc();

/// The library `name`, from the loader's folders, else from these. `purpose` is a sentence for the CompileError where there is none.
void* open_cuda_library(const std::string& name, const char* purpose);

}  // namespace shardarray::cuda

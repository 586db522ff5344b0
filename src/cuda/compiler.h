// Printed kernels as code of a GPU.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "cuda/libraries.h"

namespace shardarray::cuda {

/// A file that printed texts include, by the name under which they do.
struct PrintedHeader {
  const char *name, *text;
};
/// All of them, what stands for the standard library included.
std::span<const PrintedHeader> printed_headers();

/// "sm_90" of 9 and 0.
std::string architecture_name(int major, int minor);
/// The options by which texts are compiled for an architecture: the arithmetic is the CPU's.
std::vector<std::string> compiler_options(const std::string& architecture);
/// All that the code of a text depends on: text, headers, options, the version of NVRTC.
std::string code_key(const Nvrtc& compiler, const std::string& text, const std::string& architecture);
/// The cubin of a text (printed_prelude(), then kernels). Throws CompileError with NVRTC's log. `report`, where it is not null: what
/// the kernels need of a GPU, in NVRTC's words.
std::vector<char> compile_text(const Nvrtc& compiler, const std::string& text,
                               const std::string& architecture, std::string* report = nullptr);

}  // namespace shardarray::cuda

// Compiles printed kernels for a GPU.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "cuda/libraries.h"

namespace shardarray::cuda {

/// A file that printed texts include, under this name.
struct PrintedHeader {
  const char *name, *text;
};
/// All of them, including the replacement of the standard library.
std::span<const PrintedHeader> printed_headers();

/// "sm_90" for 9 and 0.
std::string architecture_name(int major, int minor);
/// The compiler options for an architecture: arithmetic gives the CPU's bits.
std::vector<std::string> compiler_options(const std::string& architecture);
/// Everything that a text's code depends on: text, headers, options, NVRTC's version.
std::string code_key(const Nvrtc& compiler, const std::string& text, const std::string& architecture);
/// The cubin of a text (printed_prelude(), then kernels). Throws CompileError with NVRTC's log. `report`, if not null: NVRTC's log of the
/// kernels' resource usage.
std::vector<char> compile_text(const Nvrtc& compiler, const std::string& text,
                               const std::string& architecture, std::string* report = nullptr);

}  // namespace shardarray::cuda

// Kernel IR as plain C++ text: scalar loops, the simplest reading of kernel.h, to check backends against.
#pragma once
#include <string>

#include "runtime/kernel.h"

namespace shardarray {

/// What the text of every kernel needs before it; compile with -ffp-contract=off and the library's include
/// directories.
std::string cpp_prelude();
/// One function of the given name:
///   extern "C" void name(void* const* args, const int64_t* extents, const int64_t* starts,
///                        const int64_t* strides, const int64_t* indirect)
/// args[a]: element at domain point 0; strides[a * rank + d]: elements; indirect[a * 3]: stride, first row,
/// rows of load_at.
std::string to_cpp(const Kernel& k, const std::string& name);

}  // namespace shardarray

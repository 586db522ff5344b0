// Spelling of types, constants and reducers in printed kernels.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/kernel.h"

namespace shardarray::cuda {

/// The C++ type in which kernels compute with elements of type t.
const char* printed_type(DType t);
std::string printed_bits(DType t, std::uint64_t bits);
/// The struct that combines two lanes (kernels/printed.cuh).
const char* printed_reducer(Reducer r);

}  // namespace shardarray::cuda

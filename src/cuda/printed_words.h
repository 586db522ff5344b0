// How types, constants and reducers are spelled in printed kernels.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/kernel.h"

namespace shardarray::cuda {

/// The C++ type of an element that kernels compute with.
const char* printed_type(DType t);
/// A constant.
std::string printed_bits(DType t, std::uint64_t bits);
/// What combines two lanes (kernels/printed.cuh).
const char* printed_reducer(Reducer r);

}  // namespace shardarray::cuda

// Where a GPU has a shorter way to the same bits: what printed kernels ask.
#pragma once
#include <cstdint>

#include "runtime/kernel.h"

namespace shardarray::cuda {

/// "max" or "min" where a select keeps x at least or at most at a number, else null. x may be NaN, as the result then is.
const char* limited_by(const Kernel& k, const Instr& select);

/// Where a quotient is one of y / (y + c), c' / (y + c) for powers of two near 1: y; else -1 (kernels/ordinary.cuh: ratios).
std::int32_t added_to_one(const Kernel& k, const Instr& quotient);

}  // namespace shardarray::cuda

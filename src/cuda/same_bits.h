// Patterns in kernels for which a GPU has a faster way to the same bits.
#pragma once
#include <cstdint>

#include "runtime/kernel.h"

namespace shardarray::cuda {

/// "max" or "min" if the select clamps x from below or above by a number, else null. A NaN x stays NaN.
const char* limited_by(const Kernel& k, const Instr& select);

/// If the quotient is y / (y + c) or c' / (y + c), for powers of two near 1: y; else -1 (kernels/ordinary.cuh: ratios).
std::int32_t added_to_one(const Kernel& k, const Instr& quotient);

}  // namespace shardarray::cuda

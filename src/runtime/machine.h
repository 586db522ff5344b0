// Described machines as platforms: they compile programs, and run none.
#pragma once
#include <string_view>

#include "shardarray/dtype.h"
#include "shardarray/machine.h"

namespace shardarray {

/// The machine whose devices a platform has; null: the platform computes.
const Machine* described_machine(std::string_view platform);

/// Throws DeviceError where a number makes no sense.
void check_machine(const Machine& m);

/// A device's operations a second in products of this dtype; `tf32`: of float32 where that may be less exact.
double flops_of(const Machine& m, DType dtype, bool tf32);

}  // namespace shardarray

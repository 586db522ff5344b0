// Described machines as platforms: programs are compiled for them but cannot run.
#pragma once
#include <string_view>

#include "shardarray/dtype.h"
#include "shardarray/machine.h"

namespace shardarray {

/// The machine that a platform describes; null for platforms that can run programs.
const Machine* described_machine(std::string_view platform);

/// Throws DeviceError if a number makes no sense.
void check_machine(const Machine& m);

/// A device's operations per second in products of this dtype; `tf32`: float32 products may be rounded to TF32.
double flops_of(const Machine& m, DType dtype, bool tf32);

}  // namespace shardarray

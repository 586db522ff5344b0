// What a program does, as a number that processes compare.
#pragma once
#include <cstdint>

#include "runtime/program.h"

namespace shardarray {

/// Of every step with its kernels, numbers and addresses, and of what enters and leaves: the same in each process that compiled the
/// same program. Labels and lines do not count.
std::uint64_t fingerprint(const Program& program);

}  // namespace shardarray

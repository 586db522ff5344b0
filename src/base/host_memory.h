// Memory of the process for the values of arrays.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardarray/error.h"

namespace shardarray {

/// Zeros. Throws OutOfMemory in the name of `function`.
std::vector<std::byte> host_bytes(const char* function, std::int64_t bytes);

}  // namespace shardarray

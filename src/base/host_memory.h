// Host memory for array values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardarray/error.h"

namespace shardarray {

/// Zeroed bytes. Throws OutOfMemory in the name of `function`.
std::vector<std::byte> host_bytes(const char* function, std::int64_t bytes);

}  // namespace shardarray

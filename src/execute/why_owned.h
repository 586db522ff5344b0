// Explains why a donated argument was not reused.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "shardarray/array.h"

namespace shardarray {

/// Why argument k's memory was not taken over though the plan would have done so: it has another owner, perhaps another argument.
std::string why_owned(std::span<const Array> arguments, const std::vector<std::string>& paths,
                      bool share_replicas, std::size_t k);

}  // namespace shardarray

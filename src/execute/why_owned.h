// What is said of arguments that were donated in vain.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "shardarray/array.h"

namespace shardarray {

/// Why the memory of argument k was not taken though the plan would have done so: somebody else has it, which may be another argument.
std::string why_owned(std::span<const Array> arguments, const std::vector<std::string>& paths,
                      bool share_replicas, std::size_t k);

}  // namespace shardarray

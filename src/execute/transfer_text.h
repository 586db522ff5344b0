// Text that several messages about transfers share.
#pragma once
#include <string>

#include "shardarray/explain.h"

namespace shardarray {

/// `f32[16,4] and 2 more`: the values that it moves.
std::string moved_text(const TransferInfo& t);

}  // namespace shardarray

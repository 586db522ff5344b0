// What lines about a transfer have in common.
#pragma once
#include <string>

#include "shardarray/explain.h"

namespace shardarray {

/// `f32[16,4] and 2 more`: what it moves.
std::string moved_text(const TransferInfo& t);

}  // namespace shardarray

// Times as text.
#pragma once
#include <string>

namespace shardarray {

/// "1.23 ms": three digits, in the largest unit in which it is at least 1; at least ns, at most s with all its digits.
std::string duration_text(double seconds);

}  // namespace shardarray

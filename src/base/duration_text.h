// How a time is printed.
#pragma once
#include <string>

namespace shardarray {

/// "1.23 ms": three digits, in the unit in which it is 1 or more; ns below, all digits of seconds.
std::string duration_text(double seconds);

}  // namespace shardarray

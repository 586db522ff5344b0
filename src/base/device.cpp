// Printing of devices; the registry is in runtime/devices.cpp.
#include "shardarray/device.h"

#include <ostream>

namespace shardarray {

std::string to_string(const Device& d) { return d.platform + ":" + std::to_string(d.id); }

std::ostream& operator<<(std::ostream& os, const Device& d) { return os << to_string(d); }

}  // namespace shardarray

// Amounts of memory as text.
#pragma once
#include <cstdint>
#include <string>

namespace shardarray {

/// `24 B`, `164.0 KB`, `12.5 MB`: 1 KB is 1000 bytes.
std::string bytes_text(std::int64_t bytes);

}  // namespace shardarray

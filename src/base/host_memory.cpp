// Failed host allocations.
#include "base/host_memory.h"

#include <fmt/core.h>

#include <string>

namespace shardarray {

// Allocated in advance, for when not even a message can be allocated.
static const OutOfMemory no_message_left(
    "shardarray: the process has no memory left. Values and programs need some. Free memory.");

static std::string refusal(const char* function, std::size_t bytes) {
  const std::string wanted = bytes == 0 ? "the memory" : fmt::format("{} bytes", bytes);
  return fmt::format(
      "{}: the system refused {} that it needs in the process. Values that are read or loaded lie there as a "
      "whole. Read or load parts, or free memory.",
      function, wanted);
}
void detail::refuse_memory(const char* function, std::size_t bytes) {
  try {
    throw OutOfMemory(refusal(function, bytes));
  } catch (const std::bad_alloc&) { throw no_message_left; }
}

std::vector<std::byte> host_bytes(const char* function, std::int64_t bytes) {
  const auto n = static_cast<std::size_t>(bytes);
  return detail::with_memory(function, n, [&] { return std::vector<std::byte>(n); });
}

}  // namespace shardarray

// Messages of OutOfMemory name what the memory was for, and the call.
#pragma once
#include <string>

#include "shardarray/error.h"

namespace shardarray {

/// The text with `function`, which the user called, in place of the backend's own. Null: unknown.
inline std::string in_name_of(const char* function, std::string text) {
  if (function && text.starts_with("allocate: ")) text.replace(0, text.find(':'), function);
  return text;
}

/// Runs take(), which allocates; `what()`: for what, as `the result f32[8]`.
template <class Take, class What> void memory_for(const Take& take, const What& what) {
  try {
    take();
  } catch (const OutOfMemory& e) {
    throw OutOfMemory(in_name_of(detail::call_site.function, e.text()) + " The memory was for " + what() +
                      ".");
  }
}

}  // namespace shardarray

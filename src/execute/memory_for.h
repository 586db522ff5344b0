// What memory was asked for, and by which call: messages of OutOfMemory name both.
#pragma once
#include <string>

#include "shardarray/error.h"

namespace shardarray {

/// The text with `function`, that the user has called, in place of the backend's own. Null: unknown.
inline std::string in_name_of(const char* function, std::string text) {
  if (function && text.starts_with("allocate: ")) text.replace(0, text.find(':'), function);
  return text;
}

/// take(), which allocates; `what()` is a text: `the result f32[8]`.
template <class Take, class What> void memory_for(const Take& take, const What& what) {
  try {
    take();
  } catch (const OutOfMemory& e) {
    throw OutOfMemory(in_name_of(detail::call_site.function, e.text()) + " The memory was for " + what() +
                      ".");
  }
}

}  // namespace shardarray

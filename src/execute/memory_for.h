// What memory was asked for: messages of OutOfMemory name it.
#pragma once
#include <string>

#include "shardarray/error.h"

namespace shardarray {

/// take(), which allocates; `what()` is a text: `the result f32[8]`.
template <class Take, class What> void memory_for(const Take& take, const What& what) {
  try {
    take();
  } catch (const OutOfMemory& e) { throw OutOfMemory(e.text() + " The memory was for " + what() + "."); }
}

}  // namespace shardarray

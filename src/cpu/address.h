// From a program's address to memory.
#pragma once
#include "runtime/program.h"

namespace shardarray {

inline char* address(void* const* bases, const Ref& r) {
  return static_cast<char*>(bases[r.base]) + r.offset;
}

}  // namespace shardarray

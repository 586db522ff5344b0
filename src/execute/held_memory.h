// Texts on what occupies a device's memory.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "compile/passes.h"
#include "shardarray/explain.h"

namespace shardarray {

/// `file:line`; "" where none is known.
std::string place(Where w);

/// The largest buffers at the peak; `paths`: of the arguments.
std::vector<BufferInfo> buffer_list(const Compiled& c, const std::vector<std::string>& paths,
                                    const Mesh* mesh);

/// `jit: a device needs 4 KB, and may need 1 KB. Save 3 KB.`, the largest buffers, and what would save memory, the largest saving first.
/// `gives`: some arguments are donated.
std::string too_much_memory(const char* function, std::int64_t needs, std::int64_t may_need,
                            std::span<const BufferInfo> largest, bool gives);

/// Throws OutOfMemory for a program that needs more than `bytes` on some device.
void check_budget(const Compiled& c, const std::vector<std::string>& paths, const Mesh* mesh,
                  std::int64_t bytes, const char* function);

}  // namespace shardarray

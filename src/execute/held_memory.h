// What takes a device's memory, as texts.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "compile/passes.h"
#include "shardarray/explain.h"

namespace shardarray {

/// `file:line`; "" where none is known.
std::string place(Where w);

/// The largest pieces at the worst moment; `paths`: of the arguments.
std::vector<BufferInfo> buffer_list(const Compiled& c, const std::vector<std::string>& paths,
                                    const Mesh* mesh);

/// `jit: a device needs 4 KB, and may need 1 KB. Save 3 KB.`, the largest pieces, and what would save memory, most first. `gives`: some
/// arguments are donated.
std::string too_much_memory(const char* function, std::int64_t needs, std::int64_t may_need,
                            std::span<const BufferInfo> largest, bool gives);

/// Throws OutOfMemory for a program that needs more on some device than so many bytes.
void check_budget(const Compiled& c, const std::vector<std::string>& paths, const Mesh* mesh,
                  std::int64_t bytes, const char* function);

}  // namespace shardarray

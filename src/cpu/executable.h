// A program made ready for the CPU: a task graph of plans. It starts in the interpreter and moves on to generated
// code when that pays; the bits stay the same.
#pragma once
#include <memory>

#include "runtime/backend.h"

namespace shardarray {

std::unique_ptr<Executable> make_cpu_executable(std::shared_ptr<const Program> program);

}  // namespace shardarray

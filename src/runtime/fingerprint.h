// What a program does, for comparison between processes: one number, and the steps to find a difference.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/program.h"

namespace shardarray {

/// Of the devices in order, of all steps with kernels, numbers and addresses, and of inputs and outputs: equal in all processes that
/// compiled the same program. Ignores labels and lines.
struct Fingerprint {
  struct Mark {
    std::uint64_t value = 0;  ///< hash of all marks up to this one
    std::string text;         ///< readable description
  };
  std::vector<Mark> marks;  ///< inputs and outputs, then the steps
  std::uint64_t value() const { return marks.back().value; }
};
Fingerprint fingerprint(const Program& program);

}  // namespace shardarray

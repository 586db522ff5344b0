// What a program does, as processes compare it: by one number, and where that differs by all of its steps.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/program.h"

namespace shardarray {

/// Of the devices in their order, of every step with its kernels, numbers and addresses, and of what enters and leaves: the same in each
/// process that compiled the same program. Labels and lines do not count.
struct Fingerprint {
  struct Mark {
    std::uint64_t value = 0;  ///< of all up to and with it
    std::string text;         ///< what it is, for people
  };
  std::vector<Mark> marks;  ///< what enters and leaves, then the steps
  std::uint64_t value() const { return marks.back().value; }
};
Fingerprint fingerprint(const Program& program);

}  // namespace shardarray

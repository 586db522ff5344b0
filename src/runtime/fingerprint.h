// What a program does, as processes compare it: by one number, and where that differs by all of its steps.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/program.h"

namespace shardarray {

/// Of every step with its kernels, numbers and addresses, and of what enters and leaves: the same in each process that compiled the
/// same program. Labels and lines do not count.
struct Fingerprint {
  struct Mark {
    std::uint64_t value = 0;  ///< of all up to and with it
    std::string text;         ///< what it is, for people
  };
  std::vector<Mark> marks;  ///< what enters and leaves, then the steps
  std::uint64_t value() const { return marks.back().value; }
};
Fingerprint fingerprint(const Program& program);
/// How two processes' programs that are not the same differ first: `step 2 is 'add' (a.cpp:3) of [8] in process 0 and ...`.
std::string first_difference(const std::vector<Fingerprint::Mark>& a, int process_a,
                             const std::vector<Fingerprint::Mark>& b, int process_b);

}  // namespace shardarray

// The cost model: what the choice of a placement weighs. Seconds are not predicted yet, everything is in bytes received by the
// busiest device. One object in the compiler's input, so that a measured model can take its place.
#pragma once
#include <cstdint>

#include "runtime/target.h"

namespace shardarray {

class CostModel {
 public:
  explicit CostModel(const Target::Links& links) : links_(links) {}
  /// One transfer of so many bytes, a halo too; every one costs a little, so that fewer win ties.
  double transfer(std::int64_t bytes) const {
    return bytes > 0 ? static_cast<double>(bytes) + links_.start : 0;
  }
  /// Arithmetic on the busiest device.
  double compute(double operations) const { return operations * links_.operation; }

 private:
  Target::Links links_;
};

}  // namespace shardarray

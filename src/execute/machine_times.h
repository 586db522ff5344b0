// Estimates how long a program takes on a machine, from the machine's rates.
#pragma once
#include <vector>

#include "runtime/machine.h"
#include "runtime/program.h"

namespace shardarray {

class MachineTimes {
 public:
  /// Both must outlive it. Devices that are not the machine's own count as its first ones, in the program's order. Throws DeviceError if it
  /// has fewer.
  MachineTimes(const Program& program, const Machine& m);

  /// Seconds of a transfer of the program, over all its runs: collectives over groups with several levels of links go level by level, the
  /// slowest links carrying the least; other transfers take the slowest links between their devices.
  double seconds(const Transfer& t) const;

  /// Seconds of the busiest device's steps, one after the other: a start-up latency each; for products and convolutions the longer of
  /// arithmetic and memory time, for other steps memory time; of a choice the longest branch, of a while loop one iteration.
  double compute_seconds() const;

 private:
  const Program& program_;
  const Machine& machine_;
  std::vector<int> numbers_;  // per position: the number of the machine's device
};

}  // namespace shardarray

// How long a program takes on a machine, by its rates.
#pragma once
#include <vector>

#include "runtime/machine.h"
#include "runtime/program.h"

namespace shardarray {

class MachineTimes {
 public:
  /// Both live as long as it. Devices that are not the machine's own count as its first ones, in the program's order. Throws DeviceError
  /// where it has fewer.
  MachineTimes(const Program& program, const Machine& m);

  /// Seconds of a transfer of the program, all its runs: collectives over groups of several levels of links go level by level, the
  /// slowest links carrying the least; whatever else moves takes the slowest links between its devices.
  double seconds(const Transfer& t) const;

  /// Seconds of the busiest device's steps one after the other: what each costs to begin; products and convolutions what their arithmetic
  /// or their memory takes, whichever is longer, other steps their memory; of branches the longest; of what repeats as long as it is
  /// asked for one run.
  double compute_seconds() const;

 private:
  const Program& program_;
  const Machine& machine_;
  std::vector<int> numbers_;  // by position: of the machine's device
};

}  // namespace shardarray

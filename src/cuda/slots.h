// Assigns the values of an interpreting kernel to slots.
#pragma once
#include <vector>

#include "runtime/kernel.h"

namespace shardarray::cuda {

struct KernelSlots {
  struct Place {
    int value = 0;            ///< of a reduce: the lane's value, later the result
    int total = 0, lost = 0;  ///< of a reduce
  };
  std::vector<Place> places;  ///< by instruction
  int count = 0;              ///< slots in use
};
/// A slot is reused after the last use of its value.
KernelSlots slots_of(const Kernel& k);

}  // namespace shardarray::cuda

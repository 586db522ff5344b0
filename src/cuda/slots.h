// Which slot of an interpreting kernel holds which value.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/kernel.h"

namespace shardarray::cuda {

struct KernelSlots {
  struct Place {
    std::uint16_t value = 0;            ///< of a reduce: its lane, later its result
    std::uint16_t total = 0, lost = 0;  ///< of a reduce
  };
  std::vector<Place> places;  ///< by instruction
  int count = 0;              ///< slots in use
};
/// A slot is free again after the last use of its value.
KernelSlots slots_of(const Kernel& k);

}  // namespace shardarray::cuda

// Values whose last use is that they are gathered or put together are made where the result lies: nobody copies what is there.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "compile/addresses.h"

namespace shardarray {

/// Memory inside of another one.
struct Within {
  struct Place {
    std::size_t instance = 0;  ///< of the host
    std::uint64_t offset = 0;  ///< bytes behind its beginning
  };
  int memory = -1, host = -1;  ///< local values
  std::vector<Place> places;   ///< by instance of `memory`
};
/// Where an operand of this step would lie in its result. None where that is neither a transfer which gathers nor made of boxes, or tiles
/// of the operand are no rows of the result's that begin at multiples of `alignment` bytes.
std::optional<Within> within_result(const LocalStep& s, std::size_t operand, const FlatGraph& g,
                                    Addresses& at, std::uint64_t alignment);

}  // namespace shardarray

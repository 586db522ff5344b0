// Values whose last use is that they are gathered or put together are made where the result lies: nobody copies what is there.
#pragma once
#include <cstdint>
#include <map>
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
  std::vector<Place>
      places;  ///< by instance of `memory`; empty: at the beginning of the host's one of the same number
};
/// Where the operands of one step would lie in its result.
class PartPlaces {
 public:
  /// `s` stays where it is.
  PartPlaces(const LocalStep& s, const FlatGraph& g, Addresses& at, std::uint64_t alignment);
  /// None where the step is neither a transfer which gathers nor made of boxes, or tiles of the operand are no rows of the result's that
  /// begin at multiples of the alignment.
  std::optional<Within> within(std::size_t operand);

 private:
  // Where all of an operand's tile goes at once; none: nowhere, or to several places.
  using Parts = std::vector<std::optional<Box>>;
  const Parts& parts(int position);

  const LocalStep& s_;
  Addresses& at_;
  const std::uint64_t alignment_;
  const FlatNode* const node_;
  bool is_possible_;
  std::map<int, Parts> parts_;  // by position: made once for all operands
};

}  // namespace shardarray

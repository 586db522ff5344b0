// Values whose last use is to be gathered or assembled are made inside the result's memory, which saves their copy.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "compile/addresses.h"

namespace shardarray {

/// A memory inside another one.
struct Within {
  struct Place {
    std::size_t instance = 0;  ///< of the host
    std::uint64_t offset = 0;  ///< bytes from its start
  };
  int memory = -1, host = -1;  ///< local values
  std::vector<Place>
      places;  ///< by instance of `memory`; empty: each at the start of the host's instance of the same number
};
/// Where the operands of one step would be in its result.
class PartPlaces {
 public:
  /// Refers to `s`.
  PartPlaces(const LocalStep& s, const FlatGraph& g, Addresses& at, std::uint64_t alignment);
  /// None if the step is neither a gathering transfer nor assembled from boxes, or if tiles of the operand are not contiguous and aligned
  /// in the result.
  std::optional<Within> within(std::size_t operand);

 private:
  // Where an operand's whole tile goes; none: nowhere, or to several places.
  using Parts = std::vector<std::optional<Box>>;
  const Parts& parts(int position);

  const LocalStep& s_;
  Addresses& at_;
  const std::uint64_t alignment_;
  const FlatNode* const node_;
  bool is_possible_;
  std::map<int, Parts> parts_;  // by position: computed once for all operands
};

}  // namespace shardarray

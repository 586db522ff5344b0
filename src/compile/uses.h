// Who reads each value of a program.
#pragma once
#include <vector>

#include "graph/flat.h"

namespace shardarray {

struct Uses {
  explicit Uses(const FlatGraph& g);
  /// Whether one node alone reads v, however often, and v is no result.
  bool has_one(int v) const;
  /// The line of a node; of one that has none (an index in brackets), the line where it is used first.
  detail::RecordedLine line_of(const FlatNode& n, const FlatGraph& g) const;

  std::vector<std::vector<int>>
      nodes;  ///< by value; what a collective takes has its users and those of the same value
  std::vector<bool> is_output;  ///< by value
};

}  // namespace shardarray

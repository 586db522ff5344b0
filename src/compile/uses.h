// The readers of each value of a program.
#pragma once
#include <vector>

#include "graph/flat.h"

namespace shardarray {

struct Uses {
  explicit Uses(const FlatGraph& g);
  /// Whether at most one node reads v, however often, and v is no result.
  bool has_one(int v) const;
  /// The line of a node; if it has none (an index in brackets), that of its first use.
  detail::RecordedLine line_of(const FlatNode& n, const FlatGraph& g) const;

  std::vector<std::vector<int>>
      nodes;  ///< by value; a collective's marked operand also has the users of the unmarked value
  std::vector<bool> is_output;  ///< by value
};

}  // namespace shardarray

// An index of boxes by where they start.
#pragma once
#include <cstdint>
#include <vector>

#include "layout/layout.h"

namespace shardarray {

/// Finds the boxes that intersect a given one without scanning all: only those whose start is in range in every dimension. For tiles of one
/// value the time is proportional to the result; for other boxes it is correct but may be slower.
class BoxIndex {
 public:
  /// Boxes of equal rank. Empty ones intersect nothing.
  explicit BoxIndex(std::vector<Box> boxes);
  const std::vector<Box>& boxes() const { return boxes_; }
  /// Indices of the boxes that intersect `b`, ascending.
  std::vector<int> meeting(const Box& b) const;
  /// The boxes that meeting() tests.
  std::vector<int> candidates(const Box& b) const;

 private:
  struct Starts {
    std::vector<std::int64_t> values;  ///< ascending, distinct
    std::int64_t longest = 0;          ///< longest box
  };
  std::vector<Box> boxes_;
  std::vector<int> order_;  ///< non-empty boxes, sorted by lo
  std::vector<Starts> starts_;
};

}  // namespace shardarray

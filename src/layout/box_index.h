// Boxes by where they start.
#pragma once
#include <cstdint>
#include <vector>

#include "layout/layout.h"

namespace shardarray {

/// Finds the boxes that meet another one without a look at all of them: those whose start lies in range, dimension by
/// dimension. The time is that of what it finds where boxes are tiles of one value; for any boxes it is never wrong.
class BoxIndex {
 public:
  /// Boxes of one rank. Empty ones meet nothing.
  explicit BoxIndex(std::vector<Box> boxes);
  const std::vector<Box>& boxes() const { return boxes_; }
  /// Numbers of those that meet `b`, ascending.
  std::vector<int> meeting(const Box& b) const;
  /// Those at which meeting() looks.
  std::vector<int> candidates(const Box& b) const;

 private:
  struct Starts {
    std::vector<std::int64_t> values;  ///< ascending, each once
    std::int64_t longest = 0;          ///< of the boxes
  };
  std::vector<Box> boxes_;
  std::vector<int> order_;  ///< those that are not empty, by their lo
  std::vector<Starts> starts_;
};

}  // namespace shardarray

// Who sends which box to whom.
#pragma once
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "layout/box_index.h"

namespace shardarray {

/// One box that travels: global coordinates, and which position sends it to which.
struct BoxMove {
  int from, to;
  Box box;
};

/// What is in some of these boxes, as boxes that do not overlap; those that come first stay whole.
std::vector<Box> disjoint(const std::vector<Box>& boxes);

/// What positions hold of one value, each box once.
class HeldBoxes {
 public:
  /// `sources[p]` is what position p holds.
  explicit HeldBoxes(const std::vector<Box>& sources);
  /// In the order of their first positions; empty boxes are left out.
  const std::vector<Box>& boxes() const { return index_.boxes(); }
  /// The positions that hold box b, ascending.
  const std::vector<int>& owners(int b) const { return owners_[static_cast<std::size_t>(b)]; }
  /// The box that position p holds; -1: none.
  int box_of(int p) const {
    return p < static_cast<int>(box_of_.size()) ? box_of_[static_cast<std::size_t>(p)] : -1;
  }
  std::vector<int> meeting(const Box& b) const { return index_.meeting(b); }

 private:
  explicit HeldBoxes(std::vector<std::pair<Box, std::vector<int>>> parts, std::size_t positions);
  std::vector<std::vector<int>> owners_;
  std::vector<int> box_of_;
  BoxIndex index_;
};

/// Chooses who sends: boxes that together fill a target, each from one position of the sources: itself where it has the data,
/// otherwise the first owner in its memory, otherwise the least loaded of the owners, nearest first. Empty boxes are left out.
class BoxSenders {
 public:
  /// `memory`: by position, whose is the same as whose; empty: nobody's, or everybody's.
  explicit BoxSenders(const std::vector<Box>& sources, std::vector<int> memory = {});
  /// Appends the moves that fill `target` at position p. Throws InternalError where the sources do not cover it.
  void fill(const Box& target, int p, std::vector<BoxMove>& out);
  /// From here on nobody has sent anything.
  void restart();

 private:
  using Load = std::pair<std::int64_t, int>;  // elements sent, position
  int sender(int box, int target) const;
  void count(int box, int from, std::int64_t elements);

  HeldBoxes held_;
  std::vector<int> memory_;
  std::vector<std::vector<int>> overlaps_;  // box -> others that meet it
  std::vector<std::set<Load>> loads_;       // box -> its owners
  std::vector<std::int64_t> sent_;          // by position
  std::vector<int> busy_;                   // those that have sent
};

}  // namespace shardarray

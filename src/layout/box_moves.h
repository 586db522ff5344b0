// Which position sends which box to which.
#pragma once
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "layout/box_index.h"

namespace shardarray {

/// A box in transit: its global coordinates, its sender and its receiver.
struct BoxMove {
  int from, to;
  Box box;
};

/// The union of these boxes as disjoint boxes; earlier ones stay whole.
std::vector<Box> disjoint(const std::vector<Box>& boxes);

/// The boxes of one value that positions hold, without duplicates.
class HeldBoxes {
 public:
  /// `sources[p]`: the box of position p.
  explicit HeldBoxes(const std::vector<Box>& sources);
  /// Ordered by their first position; without empty boxes.
  const std::vector<Box>& boxes() const { return index_.boxes(); }
  /// The positions that hold box b, ascending.
  const std::vector<int>& owners(int b) const { return owners_[static_cast<std::size_t>(b)]; }
  /// The box of position p, or -1.
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

/// Chooses senders: boxes that together fill a target, each from one source position: the target itself if it has the data, else the first
/// owner in its memory, else the least loaded owner, nearest first. Empty boxes are left out.
class BoxSenders {
 public:
  /// `memory`: an id per position, equal for positions that share a memory; empty: none or all do.
  explicit BoxSenders(const std::vector<Box>& sources, std::vector<int> memory = {});
  /// Appends the moves that fill `target` at position p. Throws InternalError if the sources do not cover it.
  void fill(const Box& target, int p, std::vector<BoxMove>& out);
  /// Resets the loads of all senders.
  void restart();

 private:
  using Load = std::pair<std::int64_t, int>;  // elements sent, position
  int sender(int box, int target) const;
  void count(int box, int from, std::int64_t elements);

  HeldBoxes held_;
  std::vector<int> memory_;
  std::vector<std::vector<int>> overlaps_;  // box -> other boxes that intersect it
  std::vector<std::set<Load>> loads_;       // box -> its owners
  std::vector<std::int64_t> sent_;          // elements, by position
  std::vector<int> busy_;                   // positions that have sent something
};

}  // namespace shardarray

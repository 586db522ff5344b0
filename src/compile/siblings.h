// Loops side by side: which of them may become one that reads their common operand once.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "compile/step_kind.h"

namespace shardarray {

/// What a group reads from outside that is as large as what it writes, or nearly so.
struct GroupReads {
  std::set<int> all, temporary;  ///< local values; those that a step made
  /// Whether one of them waits for nothing that the other does not wait for: merged, they keep no more alive.
  static bool nest(const GroupReads& a, const GroupReads& b);
};

/// The state of fusion: see fuse.cpp.
struct StepGroups {
  const Partition& p;
  const FlatGraph& g;
  const std::vector<StepKind>& kinds;
  const std::vector<std::set<int>>& groups_of;  ///< by step
  const std::vector<std::vector<int>>& users;   ///< by local value
  const std::vector<bool>&must_store, &alone;   ///< by local value; by step
  const std::set<int> outputs = {p.outputs.begin(), p.outputs.end()};

  /// For a loop without rows over the points of a value. None if a result stays in the program, since others may be needed much later than
  /// it, or if something large is not read where the loop writes, which then cannot overwrite it. `at_points`: whether the loop computes a
  /// step at its points.
  std::optional<GroupReads> reads(int group, const std::vector<int>& steps, int points,
                                  const std::function<bool(int step)>& at_points) const;
};

}  // namespace shardarray

// Loops side by side: which of them may be one that reads once what all of them read.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "compile/step_kind.h"

namespace shardarray {

/// What a group reads from outside, as large as what it writes or nearly so.
struct GroupReads {
  std::set<int> all, temporary;  ///< local values; those that a step has made
  /// One of both waits for no value that the other does not wait for: as one they keep no more alive.
  static bool nest(const GroupReads& a, const GroupReads& b);
};

/// Where steps are while groups are made of them: see fuse.cpp.
struct StepGroups {
  const Partition& p;
  const FlatGraph& g;
  const std::vector<StepKind>& kinds;
  const std::vector<std::set<int>>& groups_of;  ///< by step
  const std::vector<std::vector<int>>& users;   ///< by local value
  const std::vector<bool>&must_store, &alone;   ///< by local value; by step
  const std::set<int> outputs = {p.outputs.begin(), p.outputs.end()};

  /// Of a loop without rows over the points of a value: none where a result stays in the program, since others may be wanted much
  /// later than it, or where something large is not read where the loop writes, which then cannot write over it. `at_points`: whether
  /// it computes a step at its points.
  std::optional<GroupReads> reads(int group, const std::vector<int>& steps, int points,
                                  const std::function<bool(int step)>& at_points) const;
};

}  // namespace shardarray

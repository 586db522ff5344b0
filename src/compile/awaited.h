// What a loop waits for: results of products and transfers, all of which are there before it begins.
#pragma once
#include <set>
#include <vector>

#include "compile/step_kind.h"

namespace shardarray {

/// Of steps: the large values that only they read, made by steps which run by themselves. Sums of many products are added up as they
/// come: a loop that waits for several does not compute what is made of several others.
class Awaited {
 public:
  /// `kinds`: of all steps; `users`: of all local values.
  Awaited(const Partition& p, const std::vector<StepKind>& kinds, const std::vector<std::vector<int>>& users);
  /// Those that the step reads itself.
  const std::vector<int>& by(int step) const { return own_[static_cast<std::size_t>(step)]; }
  /// Whether the step is computed in a loop that waits for `all` by now; else it is stored.
  bool may_join(int step, const std::set<int>& all) const;

 private:
  std::vector<std::vector<int>> own_, below_;  // by step: that it reads; that loops make it of, some of many
};

}  // namespace shardarray

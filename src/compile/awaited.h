// What a fused loop waits for: results of products and transfers, which must all exist before it starts.
#pragma once
#include <set>
#include <vector>

#include "compile/step_kind.h"

namespace shardarray {

/// Per step: the large values that only it reads, made by steps that run alone. Sums of many products are accumulated as these arrive: a
/// loop that waits for several of them absorbs no step that depends on several others, which would keep all of them alive.
class Awaited {
 public:
  /// `kinds`: per step; `users`: per local value.
  Awaited(const Partition& p, const std::vector<StepKind>& kinds, const std::vector<std::vector<int>>& users);
  /// Those that the step reads itself.
  const std::vector<int>& by(int step) const { return own_[static_cast<std::size_t>(step)]; }
  /// Whether the step may be computed in a loop that already waits for `all`; otherwise its result is stored.
  bool may_join(int step, const std::set<int>& all) const;

 private:
  std::vector<std::vector<int>> own_, below_;  // by step: that it reads; that loops make it of, some of many
};

}  // namespace shardarray

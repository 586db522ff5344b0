// The body of a loop, partitioned for various layouts of its operands.
#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "compile/passes.h"
#include "graph/iteration.h"

namespace shardarray {

/// Layouts of the body's operands: constants, carries, elements of sequences.
using RunLayouts = std::vector<const Layout*>;

class BodyRun {
 public:
  /// Both must outlive it.
  BodyRun(const Iteration& it, const CompileInput& in);
  /// `closed`: carries must leave in the layouts in which they came; those that are overwritten may reuse their buffers.
  CompileInput input(const RunLayouts& layouts, bool closed) const;
  /// Cached.
  const Partition& partitioned(const RunLayouts& layouts, bool closed, bool is_draft = false);
  /// Chooses layouts of the carries: as finely sharded as an iteration leaves them. If it leaves them in other layouts with as many tiles,
  /// it takes those where that moves less.
  void settle_carries(RunLayouts& layouts, bool is_draft = false);
  /// Whether an iteration leaves the carries in the layouts in which it gets them.
  bool keeps_carries(const Partition& p, const RunLayouts& layouts) const;
  /// Whether an iteration adds to carry k, or to a multiple of it.
  bool adds_to(std::size_t k) const;
  /// False if policies or collectives of the body fix what moves.
  bool may_choose() const;
  const Iteration& iteration() const { return it_; }

 private:
  const Partition& cut_carries(RunLayouts& layouts, bool is_draft);

  const Iteration& it_;
  const CompileInput& in_;
  FlatGraph body_;
  std::map<std::tuple<RunLayouts, bool, bool>, Partition> partitions_;
};

}  // namespace shardarray

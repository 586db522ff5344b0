// One run of an iteration, placed for operands in one way after another.
#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "compile/passes.h"
#include "graph/iteration.h"

namespace shardarray {

/// Of the operands of a run: constants, carries, elements of sequences.
using RunLayouts = std::vector<const Layout*>;

class BodyRun {
 public:
  /// Both have to stay.
  BodyRun(const Iteration& it, const CompileInput& in);
  /// `closed`: carries shall be where they were; those that are written over may lie on what they were.
  CompileInput input(const RunLayouts& layouts, bool closed) const;
  /// Made once.
  const Partition& partitioned(const RunLayouts& layouts, bool closed, bool is_draft = false);
  /// Carries get places: cut as finely as runs leave them. Where runs leave them otherwise than they find them, they are found so, if that
  /// moves less.
  void settle_carries(RunLayouts& layouts, bool is_draft = false);
  /// Does this run leave the carries as it finds them?
  bool keeps_carries(const Partition& p, const RunLayouts& layouts) const;
  /// Whether a run adds to carry k, or to a multiple of it.
  bool adds_to(std::size_t k) const;
  /// Else it runs as the program says.
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

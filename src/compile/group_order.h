// Reorders groups so that similar ones are neighbours and can become one step.
#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "compile/passes.h"

namespace shardarray {

/// Dependencies between groups, and their current order. `f` and `p` must outlive it, unchanged.
class GroupOrder {
 public:
  GroupOrder(const Fusion& f, const Partition& p, const FlatGraph& g, const CompileInput& in);
  /// The groups' numbers, in order.
  const std::vector<int>& order() const { return order_; }
  int position(int group) const { return position_[static_cast<std::size_t>(group)]; }

  /// Moves each group of a list in `alike` (ascending) to just before the next one of the list, if nothing in between needs its results or
  /// may overwrite what it reads.
  void bring_together(const std::vector<std::vector<int>>& alike);

  /// Groups that are to become neighbours, while they are chosen: by position.
  struct Run {
    std::vector<int> groups = {};
    /// Groups between them that must come after: they need the results, or may overwrite what these read.
    std::set<int> waits = {};
    std::int64_t delayed = 0;        ///< bytes that those read and write
    std::set<int> read_inputs = {};  ///< donated inputs that those read
    int seen = -1;                   ///< the positions up to this one were examined
    bool is_closed = false;          ///< one more would keep a donated input from being reused
  };
  Run run_of(int group) const { return {.groups = {group}, .seen = position(group)}; }
  /// False if the group, which comes after them, waits for one of them, or if others would wait with much memory.
  bool join(Run& run, int group) const;
  /// Makes them neighbours. Groups between them that wait for none of them come first.
  void place(const Run& run);

 private:
  void look_at(Run& run, int position) const;
  bool waits(const Run& run, int group) const;
  /// Whether a result of the group may take the memory of such an input.
  bool may_take(int group, int input) const;
  void number();

  const Fusion& f_;
  const Partition& p_;
  struct Of {
    std::vector<int> front;        ///< groups that it comes after
    std::int64_t bytes = 0;        ///< that it reads and writes
    std::vector<int> read_inputs;  ///< donated inputs, as local values
    std::vector<int> together;     ///< groups that stay its neighbours
  };
  std::vector<Of> of_;                 // by group
  std::vector<int> order_, position_;  // by position; by group
};

}  // namespace shardarray

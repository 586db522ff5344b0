// The order in which groups run: what is alike side by side, so that it can be one step.
#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "compile/passes.h"

namespace shardarray {

/// Which groups have to come before which, and their order by now. `f` and `p` live as long, and stay as they are.
class GroupOrder {
 public:
  GroupOrder(const Fusion& f, const Partition& p, const FlatGraph& g, const CompileInput& in);
  /// The numbers of the groups, in order.
  const std::vector<int>& order() const { return order_; }
  int position(int group) const { return position_[static_cast<std::size_t>(group)]; }

  /// Those of each list in `alike` (ascending) come to stand in front of the next one of it, as far as nobody needs what they make before,
  /// or may write over what they read.
  void bring_together(const std::vector<std::vector<int>>& alike);

  /// Groups that shall stand side by side, while they are chosen: by position.
  struct Run {
    std::vector<int> groups = {};
    /// Those between them that come behind: they need what these make, or may write over what they read.
    std::set<int> waits = {};
    std::int64_t delayed = 0;        ///< bytes that those read and make
    std::set<int> read_inputs = {};  ///< that are given away and that those read
    int seen = -1;                   ///< the position up to which all this is known
    bool is_closed = false;  ///< one more would keep something that is given away from being taken over
  };
  Run run_of(int group) const { return {.groups = {group}, .seen = position(group)}; }
  /// False: the group, which stands behind them, waits for one of them; or others would, with much memory.
  bool join(Run& run, int group) const;
  /// They stand side by side from now on: in front of them what waits for none of them.
  void place(const Run& run);

 private:
  void look_at(Run& run, int position) const;
  bool waits(const Run& run, int group) const;
  /// What it makes may take the memory of such an input.
  bool may_take(int group, int input) const;
  void number();

  const Fusion& f_;
  const Partition& p_;
  struct Of {
    std::vector<int> front;        ///< it comes behind these
    std::int64_t bytes = 0;        ///< that it reads and makes
    std::vector<int> read_inputs;  ///< local values of arguments that are given away
    std::vector<int> together;     ///< those that it stands side by side with for good
  };
  std::vector<Of> of_;                 // by group
  std::vector<int> order_, position_;  // by position; by group
};

}  // namespace shardarray

// Groups of fused steps and who reads what they store. Groups are joined only where no cycle comes of it.
#pragma once
#include <vector>

namespace shardarray {

class GroupGraph {
 public:
  /// A new group, which nobody reads yet.
  int add();
  /// The group that `group` is part of by now.
  int find(int group);
  /// `reader` reads from memory what `writer` stores.
  void link(int writer, int reader);
  /// b becomes part of a.
  void merge(int a, int b);
  /// One of `from`, or what reads it, directly or not, is `to`. True as well where finding out would take too long: every
  /// question costs about the same, however large the graph.
  bool leads_to(const std::vector<int>& from, int to);
  /// b reads what a stores, directly or not. True as well where finding out would take too long.
  bool is_before(int a, int b);

 private:
  std::vector<int> parent_;
  std::vector<std::vector<int>> readers_;  // as linked: find() says what they are part of now
  std::vector<int> met_;                   // the last search that met the group
  int search_ = 0;
};

}  // namespace shardarray

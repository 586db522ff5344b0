// Groups of fused steps, and who reads what they store. Groups are merged only if that makes no cycle.
#pragma once
#include <vector>

namespace shardarray {

class GroupGraph {
 public:
  /// A new group, without readers.
  int add();
  /// The group that `group` is part of now.
  int find(int group);
  /// `reader` reads from memory what `writer` stores.
  void link(int writer, int reader);
  /// Merges b into a.
  void merge(int a, int b);
  /// Whether `to` is in `from` or reads from it, directly or not. Also true if the search takes too long: the cost of a query does not grow
  /// with the graph.
  bool leads_to(const std::vector<int>& from, int to);
  /// Whether b reads what a stores, directly or not. Also true if the search takes too long.
  bool is_before(int a, int b);

 private:
  std::vector<int> parent_;
  std::vector<std::vector<int>> readers_;  // as linked: find() gives their current group
  std::vector<int> met_;                   // the last search that visited the group
  int search_ = 0;
};

}  // namespace shardarray

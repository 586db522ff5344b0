#include "compile/group_graph.h"

#include "base/at.h"

namespace shardarray {

int GroupGraph::add() {
  const int group = static_cast<int>(parent_.size());
  parent_.push_back(group);
  readers_.emplace_back();
  met_.push_back(0);
  return group;
}

int GroupGraph::find(int group) {
  while (at(parent_, group) != group) group = at(parent_, group) = at(parent_, at(parent_, group));
  return group;
}

void GroupGraph::link(int writer, int reader) { at(readers_, find(writer)).push_back(reader); }

void GroupGraph::merge(int a, int b) {
  std::vector<int>&mine = at(readers_, a), &others = at(readers_, b);
  at(parent_, b) = a;
  mine.insert(mine.end(), others.begin(), others.end());
  others = {};
}

bool GroupGraph::leads_to(const std::vector<int>& from, int to) {
  constexpr int most_links = 2048;
  int links = 0;
  std::vector<int> stack;
  search_++;
  const auto follow = [&](const std::vector<int>& groups) {
    for (int g : groups) {
      g = find(g);
      if (g == to || ++links > most_links) return true;
      if (at(met_, g) == search_) continue;
      at(met_, g) = search_;
      stack.push_back(g);
    }
    return false;
  };
  if (follow(from)) return true;
  while (!stack.empty()) {
    const int g = stack.back();
    stack.pop_back();
    if (follow(at(readers_, g))) return true;
  }
  return false;
}

bool GroupGraph::is_before(int a, int b) {
  std::vector<int> behind;
  for (int g : at(readers_, a))
    if (find(g) != a) behind.push_back(g);
  return leads_to(behind, b);
}

}  // namespace shardarray

// The order in which groups run: after those that they read from, otherwise in program order.
#include "compile/passes.h"

namespace shardarray {

// Kahn's algorithm.
std::vector<int> schedule(const std::map<int, std::set<int>>& before, const std::map<int, int>& last_step) {
  std::map<int, int> missing;
  std::map<int, std::vector<int>> after;
  std::set<std::pair<int, int>> ready;
  for (const auto& [group, step] : last_step) {
    const auto it = before.find(group);
    missing[group] = it == before.end() ? 0 : static_cast<int>(it->second.size());
    if (missing[group] == 0) ready.insert({step, group});
    else
      for (int b : it->second) after[b].push_back(group);
  }
  std::vector<int> order;
  while (!ready.empty()) {
    const int group = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(group);
    for (int a : after[group])
      if (--missing[a] == 0) ready.insert({last_step.at(a), a});
  }
  return order;
}

}  // namespace shardarray

#include "compile/siblings.h"

#include <algorithm>

#include "base/at.h"

namespace shardarray {

bool GroupReads::nest(const GroupReads& a, const GroupReads& b) {
  return std::ranges::includes(a.temporary, b.temporary) || std::ranges::includes(b.temporary, a.temporary);
}

std::optional<GroupReads> StepGroups::reads(int group, const std::vector<int>& steps, int points,
                                            const std::function<bool(int)>& at_points) const {
  constexpr std::int64_t nearly = 8;
  const LocalValue& domain = at(p.values, points);
  const auto is_inside = [&](int s) { return s >= 0 && at(groups_of, s).contains(group); };
  const auto stays = [&](int v) {
    const bool is_read = std::ranges::any_of(at(users, v), [&](int u) { return !is_inside(u); });
    return !outputs.contains(v) && (at(must_store, v) || is_read);
  };
  GroupReads found;
  for (const int s : steps) {
    const bool is_repeated = at(kinds, s) == StepKind::inlined || at(groups_of, s).size() > 1;
    if (at(alone, s) || (!is_repeated && std::ranges::any_of(at(p.steps, s).out, stays))) return std::nullopt;
    const FlatNode* const n = node_of(at(p.steps, s), g);
    const bool reads_points = n && is_elementwise(n->op->form) && at_points(s);
    for (const int v : at(p.steps, s).in) {
      const LocalValue& x = at(p.values, v);
      if (is_inside(x.step) || num_elements(x.type.shape) * nearly <= num_elements(domain.type.shape))
        continue;
      if (!reads_points || x.type.shape != domain.type.shape || x.layout != domain.layout)
        return std::nullopt;
      found.all.insert(v);
      if (x.step >= 0) found.temporary.insert(v);
    }
  }
  return found;
}

}  // namespace shardarray

#include "compile/awaited.h"

#include <algorithm>

#include "base/at.h"
#include "base/sizes.h"
#include "compile/iterate.h"

namespace shardarray {

namespace {

constexpr std::size_t several = 2;
constexpr std::size_t some = 8;                // kept per step
constexpr std::int64_t much_memory = 1 << 20;  // bytes per device: no cache holds several of them

}  // namespace

Awaited::Awaited(const Partition& p, const std::vector<StepKind>& kinds,
                 const std::vector<std::vector<int>>& users)
    : own_(p.steps.size()), below_(p.steps.size()) {
  const auto is_read_once = [&](int v) {
    const std::vector<int>& all = at(users, v);
    return std::ranges::all_of(all, [&](int u) { return u == all[0]; });
  };
  for (int s = 0; s < std::ssize(p.steps); s++) {
    std::set<int> own, below;
    for (int v : at(p.steps, s).in) {
      bool once = is_read_once(v);
      int maker = at(p.values, v).step;
      for (; maker >= 0 && at(kinds, maker) == StepKind::alias; maker = at(p.values, v).step) {
        v = at(p.steps, maker).in[0];
        once = once && is_read_once(v);
      }
      if (maker < 0) continue;
      const LocalValue& x = at(p.values, v);
      if (at(kinds, maker) != StepKind::single)
        below.insert(at(below_, maker).begin(), at(below_, maker).end());
      else if (once && bytes_of(x.type) / all_tiles(*x.layout) >= much_memory) own.insert(v);
    }
    at(own_, s).assign(own.begin(), own.end());
    below.merge(own);
    for (const int v : below)
      if (at(below_, s).size() < some) at(below_, s).push_back(v);
  }
}

bool Awaited::may_join(int step, const std::set<int>& all) const {
  if (all.size() < several) return true;
  return std::ranges::count_if(at(below_, step), [&](int v) { return !all.contains(v); }) <
         static_cast<std::ptrdiff_t>(several);
}

}  // namespace shardarray

#include "compile/awaited.h"

#include <algorithm>
#include <set>

#include "base/at.h"
#include "base/sizes.h"
#include "compile/iterate.h"

namespace shardarray {

namespace {

constexpr int most_awaited = 2;                // it is added to what the last loop has made
constexpr std::int64_t much_memory = 1 << 20;  // bytes on a device: no cache has several of them

}  // namespace

int awaited(const Partition& p, const std::vector<StepKind>& kinds, int step) {
  const std::vector<int>& in = at(p.steps, step).in;
  return static_cast<int>(std::ranges::count_if(std::set<int>(in.begin(), in.end()), [&](int v) {
    const LocalValue& x = at(p.values, v);
    return x.step >= 0 && at(kinds, x.step) == StepKind::single &&
           bytes_of(x.type) / all_tiles(*x.layout) >= much_memory;
  }));
}

bool may_await(const Partition& p, const std::vector<StepKind>& kinds, int step, int awaited) {
  if (awaited < most_awaited) return true;
  const std::vector<int>& in = at(p.steps, step).in;
  return std::ranges::count_if(std::set<int>(in.begin(), in.end()), [&](int v) {
           const int maker = at(p.values, v).step;
           return maker < 0 || at(kinds, maker) != StepKind::inlined;
         }) < 2;
}

}  // namespace shardarray

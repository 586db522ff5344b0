#include "cpu/passes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/ceil_div.h"

namespace shardarray {
namespace {

bool same(const MemoryRange& a, const MemoryRange& b) {
  return a.base == b.base && a.lo == b.lo && a.hi == b.hi;
}
/// Whether ranges that meet do so at the same elements.
bool in_step(const MemoryRanges& a, const MemoryRanges& b) {
  return std::all_of(a.begin(), a.end(), [&](const MemoryRange& x) {
    return std::all_of(b.begin(), b.end(),
                       [&](const MemoryRange& y) { return !overlap(x, y) || same(x, y); });
  });
}

/// Neighbours that may go through their elements side by side.
struct Group {
  std::vector<Work> works;
  MemoryRanges reads, writes;
  MemoryRanges walked;  // each once, without single elements
  std::int64_t bytes = 0;
  bool shared = false;  // a range is walked by several

  bool fits(const Work& w) const {
    return works.empty() ||
           (w.grain > 0 && works[0].grain > 0 && w.elements == works[0].elements &&
            bytes * Passes::least_block <= Passes::block_bytes * w.elements && in_step(writes, w.writes) &&
            in_step(writes, w.reads) && in_step(reads, w.writes));
  }

  void add(Work w) {
    const std::size_t before = walked.size();
    for (const auto& [from, to] : {std::pair(&w.reads, &reads), std::pair(&w.writes, &writes)}) {
      to->insert(to->end(), from->begin(), from->end());
      for (const MemoryRange& r : *from) {
        const auto size = static_cast<std::int64_t>(r.hi - r.lo);
        if (size < w.elements) continue;
        const auto known =
            std::find_if(walked.begin(), walked.end(), [&](const MemoryRange& x) { return same(x, r); });
        if (known == walked.end()) walked.push_back(r), bytes += size;
        else if (known - walked.begin() < static_cast<std::ptrdiff_t>(before)) shared = true;
      }
    }
    works.push_back(std::move(w));
  }
};

}  // namespace

void Passes::join(std::vector<Work>& works, std::deque<Passes>& store) {
  std::vector<Work> joined;
  for (std::size_t k = 0; k < works.size();) {
    Group g;
    while (k < works.size() && g.fits(works[k])) g.add(std::move(works[k++]));
    if (!g.shared || g.bytes < least_bytes) {
      std::move(g.works.begin(), g.works.end(), std::back_inserter(joined));
      continue;
    }
    Passes& p = store.emplace_back();
    p.elements_ = g.works[0].elements;
    constexpr std::int64_t whole = LoopNest::tile;  // units of every pass
    p.block_ = std::max<std::int64_t>(1, block_bytes * p.elements_ / g.bytes / whole) * whole;
    double cost = 0;
    for (const Work& w : g.works) p.passes_.push_back({w.units, w.grain}), cost += w.units.cost_ns;
    joined.push_back(
        Work{std::move(g.reads), std::move(g.writes), task_of(p, 0, ceil_div(p.elements_, p.block_), cost)});
  }
  works = std::move(joined);
}

void Passes::run(void* const* bases, std::int64_t begin, std::int64_t end) const {
  for (std::int64_t b = begin; b < end; b++) {
    const std::int64_t first = b * block_, last = std::min(first + block_, elements_);
    for (const Pass& p : passes_)
      p.units.run(p.units.object, bases, first / p.grain, ceil_div(last, p.grain));
  }
}

}  // namespace shardarray

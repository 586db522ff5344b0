#include "cpu/blocked_work.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/ceil_div.h"
#include "cpu/loops/loop_nest.h"

namespace shardarray {
namespace {

bool same(const MemoryRange& a, const MemoryRange& b) {
  return a.base == b.base && a.lo == b.lo && a.hi == b.hi;
}
/// Whether overlapping ranges cover the same elements in the same order.
bool in_step(const MemoryRanges& a, const MemoryRanges& b) {
  return std::all_of(a.begin(), a.end(), [&](const MemoryRange& x) {
    return std::all_of(b.begin(), b.end(),
                       [&](const MemoryRange& y) { return !overlap(x, y) || same(x, y); });
  });
}

/// Consecutive works that may run block by block together.
class Neighbours {
 public:
  std::int64_t bytes() const { return bytes_; }
  /// Whether blocking saves a quarter of the memory traffic; below that, the extra streams cost as much.
  bool gains() const { return bytes_ >= BlockedWork::least_bytes && 3 * walked_bytes_ >= 4 * bytes_; }

  bool fits(const Work& w) const {
    if (w.grain <= 0 || w.elements <= 0) return false;
    return elements_ == 0 ||
           (w.elements == elements_ && w.units.flush_denormals == flush_denormals_ &&
            bytes_ * BlockedWork::least_block <= BlockedWork::block_bytes * elements_ &&
            in_step(writes_, w.writes) && in_step(writes_, w.reads) && in_step(reads_, w.writes));
  }

  void add(const Work& w) {
    elements_ = w.elements;
    flush_denormals_ = w.units.flush_denormals;
    MemoryRanges own;
    for (const auto& [from, to] : {std::pair(&w.reads, &reads_), std::pair(&w.writes, &writes_)}) {
      to->insert(to->end(), from->begin(), from->end());
      for (const MemoryRange& r : *from) {
        const auto size = static_cast<std::int64_t>(r.hi - r.lo);
        if (size < elements_) continue;  // a single element
        if (put(own, r)) walked_bytes_ += size;
        if (put(ranges_, r)) bytes_ += size;
      }
    }
  }

 private:
  static bool put(MemoryRanges& all, const MemoryRange& r) {
    if (std::any_of(all.begin(), all.end(), [&](const MemoryRange& x) { return same(x, r); })) return false;
    all.push_back(r);
    return true;
  }

  std::int64_t elements_ = 0;
  bool flush_denormals_ = false;
  MemoryRanges reads_, writes_, ranges_;       // ranges: those of several elements, without duplicates
  std::int64_t bytes_ = 0, walked_bytes_ = 0;  // of `ranges`; of each work's own ranges, summed
};

}  // namespace

void BlockedWork::join(std::vector<Work>& works, std::deque<BlockedWork>& store) {
  std::vector<Work> joined;
  for (std::size_t k = 0; k < works.size();) {
    Neighbours group;
    std::size_t end = k;
    std::int64_t bytes = 0;
    for (std::size_t next = k; next < works.size() && group.fits(works[next]);) {
      group.add(works[next++]);
      if (group.gains()) end = next, bytes = group.bytes();
    }
    if (end == k) {
      joined.push_back(std::move(works[k++]));
      continue;
    }
    const auto members = std::span(works).subspan(k, end - k);
    Work& all = joined.emplace_back(Work{{}, {}, all_units(store.emplace_back(members, bytes))});
    all.units.flush_denormals = members[0].units.flush_denormals;
    for (const Work& w : members) all.add_ranges(w);
    k = end;
  }
  works = std::move(joined);
}

BlockedWork::BlockedWork(std::span<const Work> works, std::int64_t bytes) : elements_(works[0].elements) {
  constexpr std::int64_t whole = LoopNest::tile;  // a multiple of every pass's grain
  block_ = std::max<std::int64_t>(1, block_bytes * elements_ / bytes / whole) * whole;
  for (const Work& w : works) {
    passes_.push_back({w.units, w.grain});
    cost_ns_ += w.units.cost_ns;
  }
}

std::int64_t BlockedWork::units() const { return ceil_div(elements_, block_); }

void BlockedWork::run(void* const* bases, std::int64_t begin, std::int64_t end) const {
  for (std::int64_t b = begin; b < end; b++) {
    const std::int64_t first = b * block_, last = std::min(first + block_, elements_);
    for (const Pass& p : passes_)
      p.units.run(p.units.object, bases, first / p.grain, ceil_div(last, p.grain));
  }
}

}  // namespace shardarray

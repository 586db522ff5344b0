// Places scratch values of one device as groups run.
#pragma once
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

namespace shardarray {

/// Blocks are placed in the order of their first group, each in the lowest free gap that is large enough.
class ScratchSpace {
 public:
  /// The offset of a block that is live from group `first` to group `last`. A block of 0 bytes takes no space.
  std::uint64_t place(std::uint64_t bytes, int first, int last) {
    if (bytes == 0) return 0;
    while (!alive_.empty() && alive_.begin()->first < first) {
      free(alive_.begin()->second);
      alive_.erase(alive_.begin());
    }
    auto gap = gaps_.begin();
    while (gap->second - gap->first < bytes) ++gap;
    const auto [lo, hi] = *gap;
    gaps_.erase(gap);
    if (lo + bytes < hi) gaps_[lo + bytes] = hi;
    alive_.emplace(last, std::pair(lo, lo + bytes));
    return lo;
  }

 private:
  void free(std::pair<std::uint64_t, std::uint64_t> block) {
    auto [lo, hi] = block;
    auto next = gaps_.lower_bound(hi);
    if (next != gaps_.end() && next->first == hi) hi = next->second, next = gaps_.erase(next);
    if (next != gaps_.begin() && std::prev(next)->second == lo) std::prev(next)->second = hi;
    else gaps_[lo] = hi;
  }

  std::map<std::uint64_t, std::uint64_t> gaps_{{0, std::numeric_limits<std::uint64_t>::max()}};
  std::multimap<int, std::pair<std::uint64_t, std::uint64_t>> alive_;  // by last group
};

}  // namespace shardarray

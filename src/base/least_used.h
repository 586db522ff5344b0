// Which entry of a bounded table goes first: the one that was used longest ago.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace shardarray {

/// When an entry was used last, by its table's clock. Where that counts misses alone, repeated hits write nothing.
class LastUse {
 public:
  void mark(std::uint64_t now) const {
    if (at_.load(std::memory_order_relaxed) != now) at_.store(now, std::memory_order_relaxed);
  }
  friend bool operator<(const LastUse& a, const LastUse& b) {
    return a.at_.load(std::memory_order_relaxed) < b.at_.load(std::memory_order_relaxed);
  }

 private:
  mutable std::atomic<std::uint64_t> at_{0};
};

/// Of a table that is not empty; `last_use`: the one of an entry.
template <class Table, class Get> auto least_used(const Table& table, Get last_use) {
  return std::min_element(table.begin(), table.end(),
                          [&](const auto& a, const auto& b) { return last_use(a) < last_use(b); });
}

}  // namespace shardarray

// Least-recently-used eviction for bounded tables.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace shardarray {

/// When an entry was last used, by its table's clock. If that clock counts only misses, repeated hits write nothing.
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

/// The entry to evict from a non-empty table; `last_use(entry)` returns its LastUse.
template <class Table, class Get> auto least_used(const Table& table, Get last_use) {
  return std::min_element(table.begin(), table.end(),
                          [&](const auto& a, const auto& b) { return last_use(a) < last_use(b); });
}

}  // namespace shardarray

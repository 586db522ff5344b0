// ThreadMemo: the entries that a thread last found in a shared table, found again without the table's lock.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/per_thread.h"

namespace shardarray {

/// A unique name of a table; unlike its address it is never reused.
class TableId {
 public:
  TableId() : number_(next()++) {}
  TableId(const TableId&) : TableId() {}
  std::uint64_t number() const { return number_; }

 private:
  static std::atomic<std::uint64_t>& next() {
    static std::atomic<std::uint64_t> n{1};
    return n;
  }
  std::uint64_t number_;
};

/// Keeps nothing alive: an entry that its table dropped is gone here too.
template <class Entry> class ThreadMemo {
 public:
  /// Null if this thread has not found it recently.
  static std::shared_ptr<const Entry> find(const TableId& table) {
    const Slot& s = slot(table);
    return s.table == table.number() ? s.entry.lock() : nullptr;
  }
  static void keep(const TableId& table, const std::shared_ptr<const Entry>& e) {
    slot(table) = {table.number(), e};
  }

 private:
  struct Slot {
    std::uint64_t table = 0;
    std::weak_ptr<const Entry> entry;
  };
  struct Slots : std::array<Slot, 64> {};
  static Slot& slot(const TableId& table) {
    auto& slots = PerThread<Slots>::get();
    return slots[table.number() % slots.size()];
  }
};

}  // namespace shardarray

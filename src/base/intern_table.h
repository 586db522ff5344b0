// InternTable: one object for all equal keys, so that objects can be compared by address.
//
// An object lives while somebody holds it; unheld ones are swept now and then if nobody asked for them since the last sweep.
#pragma once
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace shardarray {

template <class Key, class T, class Less = std::less<Key>> class InternTable {
 public:
  /// Null if there is none.
  std::shared_ptr<const T> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = table_.find(key);
    return found == table_.end() ? nullptr : ask(found->second);
  }
  /// The existing object, else make(key).
  template <class Make> std::shared_ptr<const T> get(const Key& key, Make make) {
    const std::lock_guard lock(mutex_);
    if (const auto found = table_.find(key); found != table_.end()) return ask(found->second);
    if (table_.size() >= most_) sweep();
    return table_.emplace(key, Entry{make(key)}).first->second.object;
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return table_.size();
  }

 private:
  struct Entry {
    std::shared_ptr<const T> object;
    bool asked = true;  // since the last sweep
  };
  static const std::shared_ptr<const T>& ask(Entry& e) {
    e.asked = true;
    return e.object;
  }
  void sweep() {
    std::size_t held = 0;
    for (auto it = table_.begin(); it != table_.end();) {
      const bool is_held = it->second.object.use_count() > 1, asked = std::exchange(it->second.asked, false);
      held += is_held;
      it = is_held || asked ? std::next(it) : table_.erase(it);
    }
    most_ = table_.size() + std::max(few, held);
  }

  static constexpr std::size_t few = 256;
  std::mutex mutex_;
  std::map<Key, Entry, Less> table_;
  std::size_t most_ = few;
};

}  // namespace shardarray

// InternTable: one object for all equal keys, so that objects are compared by address.
//
// It lives while somebody holds it; those that nobody holds go when the table has grown to twice what it kept last time.
#pragma once
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace shardarray {

template <class Key, class T, class Less = std::less<Key>> class InternTable {
 public:
  /// Null: there is none.
  std::shared_ptr<const T> find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = table_.find(key);
    return found == table_.end() ? nullptr : found->second;
  }
  /// The one that is there, else make(key).
  template <class Make> std::shared_ptr<const T> get(const Key& key, Make make) {
    const std::lock_guard lock(mutex_);
    if (const auto found = table_.find(key); found != table_.end()) return found->second;
    if (table_.size() >= most_) {
      std::erase_if(table_, [](const auto& entry) { return entry.second.use_count() == 1; });
      most_ = std::max(few, 2 * table_.size());
    }
    return table_.emplace(key, make(key)).first->second;
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return table_.size();
  }

 private:
  static constexpr std::size_t few = 256;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const T>, Less> table_;
  std::size_t most_ = few;
};

}  // namespace shardarray

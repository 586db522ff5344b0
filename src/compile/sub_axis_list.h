// The sub-axes that shard one dimension or one factor.
#pragma once
#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "shardarray/error.h"

namespace shardarray {

/// Distinct indices into SubAxes::axes, most significant first. Their sizes are primes whose product is a number of devices (an int), which
/// bounds their number; they are stored inline.
class SubAxisList {
 public:
  static constexpr std::size_t most = 31;
  SubAxisList() = default;
  SubAxisList(std::initializer_list<int> list) { append(list.begin(), list.end()); }
  template <class It> SubAxisList(It first, It last) { append(first, last); }
  void push_back(int sub_axis) {
    if (size_ == most) throw InternalError("SubAxisList: more sub-axes than there may be");
    items_[size_++] = static_cast<std::uint8_t>(sub_axis);
  }
  template <class It> void append(It first, It last) {
    for (; first != last; ++first) push_back(*first);
  }
  /// Keeps only the first n.
  void keep(std::size_t n) { size_ = static_cast<std::uint8_t>(n); }
  template <class Predicate> void erase_if(const Predicate& p) {
    keep(static_cast<std::size_t>(std::remove_if(begin(), end(), p) - begin()));
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int operator[](std::size_t k) const { return items_[k]; }
  int back() const { return items_[size_ - std::size_t{1}]; }
  std::uint8_t* begin() { return items_; }
  std::uint8_t* end() { return items_ + size_; }
  const std::uint8_t* begin() const { return items_; }
  const std::uint8_t* end() const { return items_ + size_; }
  bool contains(int sub_axis) const { return std::find(begin(), end(), sub_axis) != end(); }
  friend bool operator==(const SubAxisList& a, const SubAxisList& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend auto operator<=>(const SubAxisList& a, const SubAxisList& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::uint8_t size_ = 0, items_[most] = {};
};

}  // namespace shardarray

// A map from pointers to ints, without allocations while small.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace shardarray {

class PointerTable {
 public:
  /// `expected`: about how many; not a limit.
  explicit PointerTable(std::size_t expected = 0) {
    while (mask_ < 2 * expected) mask_ = 2 * mask_ + 1;
    if (mask_ >= few) many_.assign(mask_ + 1, {});
  }
  /// The number of `p`, 0 if new, and whether it is new. Valid until the next call.
  std::pair<int&, bool> insert(const void* p) {
    if (2 * count_ > mask_) grow();
    Slot& s = slot(p);
    const bool fresh = s.key == nullptr;
    s.key = p;
    count_ += fresh;
    return {s.value, fresh};
  }
  /// 0 if absent.
  int operator[](const void* p) { return slot(p).value; }

 private:
  struct Slot {
    const void* key = nullptr;
    int value = 0;
  };
  Slot& slot(const void* p) {  // open addressing; at least half of the slots are empty
    Slot* const slots = many_.empty() ? few_ : many_.data();
    std::size_t k = (reinterpret_cast<std::uintptr_t>(p) * 0x9e3779b97f4a7c15ull >> 32) & mask_;
    while (slots[k].key != nullptr && slots[k].key != p) k = (k + 1) & mask_;
    return slots[k];
  }
  void grow() {
    std::vector<Slot> before(few_, few_ + few);
    if (!many_.empty()) before.swap(many_);
    mask_ = 4 * mask_ + 3;
    many_.assign(mask_ + 1, {});
    for (const Slot& s : before)
      if (s.key != nullptr) slot(s.key) = s;
  }
  static constexpr std::size_t few = 32;
  Slot few_[few];
  std::vector<Slot> many_;
  std::size_t mask_ = few - 1, count_ = 0;
};

}  // namespace shardarray

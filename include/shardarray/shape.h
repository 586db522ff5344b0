// Shapes and other short lists of 64-bit integers.
#pragma once
#include <algorithm>
#include <compare>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "shardarray/export.h"

namespace shardarray {

/// The sizes of an array's dimensions: a small vector of `int64_t` (up to 6 without an allocation). Also used for axes, permutations and
/// index lists. Prints as `[8,4]`. It may hold any numbers: functions that take a shape reject negative sizes. Members are those of
/// std::vector and check nothing, neither positions nor emptiness; a moved-from Shape is empty.
class SHARDARRAY_API Shape {
 public:
  using value_type = std::int64_t;
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> v) : Shape(v.begin(), v.end()) {}
  explicit Shape(std::span<const std::int64_t> v) : Shape(v.begin(), v.end()) {}
  explicit Shape(const std::vector<std::int64_t>& v) : Shape(v.begin(), v.end()) {}
  template <std::input_iterator It> Shape(It first, It last) {
    for (; first != last; ++first) push_back(*first);
  }
  /// `n` copies of `value`.
  [[nodiscard]] static Shape filled(std::size_t n, std::int64_t value) {
    Shape s;
    for (std::size_t k = 0; k < n; k++) s.push_back(value);
    return s;
  }
  Shape(const Shape& o) { assign(o); }
  Shape(Shape&& o) noexcept { steal(o); }
  Shape& operator=(const Shape& o) {
    if (this != &o) {
      size_ = 0;
      assign(o);
    }
    return *this;
  }
  Shape& operator=(Shape&& o) noexcept {
    if (this != &o) {
      release();
      steal(o);
    }
    return *this;
  }
  ~Shape() { release(); }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::int64_t* data() { return heap_ ? heap_ : local_; }
  [[nodiscard]] const std::int64_t* data() const { return heap_ ? heap_ : local_; }
  [[nodiscard]] std::int64_t* begin() { return data(); }
  [[nodiscard]] std::int64_t* end() { return data() + size_; }
  [[nodiscard]] const std::int64_t* begin() const { return data(); }
  [[nodiscard]] const std::int64_t* end() const { return data() + size_; }
  [[nodiscard]] std::int64_t& operator[](std::size_t i) { return data()[i]; }
  [[nodiscard]] std::int64_t operator[](std::size_t i) const { return data()[i]; }
  [[nodiscard]] std::int64_t& back() { return data()[size_ - 1]; }
  [[nodiscard]] std::int64_t back() const { return data()[size_ - 1]; }
  [[nodiscard]] std::int64_t front() const { return data()[0]; }
  void push_back(std::int64_t v) {
    if (size_ == capacity_) grow(size_ + 1);
    data()[size_++] = v;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void resize(std::size_t n, std::int64_t v = 0) {
    while (size_ < n) push_back(v);
    size_ = static_cast<std::uint32_t>(n);
  }
  /// Inserts `v` before position `at`, from 0 to size().
  void insert(std::size_t at, std::int64_t v) {
    push_back(v);
    std::rotate(begin() + at, end() - 1, end());
  }
  /// Removes the element at position `at`.
  void erase(std::size_t at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  operator std::span<const std::int64_t>() const { return {data(), size_}; }
  [[nodiscard]] friend bool operator==(const Shape& a, const Shape& b) {
    if (a.size_ != b.size_) return false;
    for (std::uint32_t k = 0; k < a.size_; k++)  // short: calling memcmp would cost more
      if (a.data()[k] != b.data()[k]) return false;
    return true;
  }

 private:
  void grow(std::size_t n);
  void assign(const Shape& o) {
    if (o.size_ > capacity_) grow(o.size_);
    if (!heap_ && !o.heap_) std::copy_n(o.local_, inline_size, local_);  // all of them: three moves, no call
    else std::copy(o.begin(), o.end(), data());
    size_ = o.size_;
  }
  void steal(Shape& o) noexcept {
    heap_ = o.heap_;
    capacity_ = o.capacity_;
    size_ = o.size_;
    if (!heap_) std::copy_n(o.local_, inline_size, local_);
    o.heap_ = nullptr;
    o.capacity_ = inline_size;
    o.size_ = 0;
  }
  void release() noexcept {
    delete[] heap_;
    heap_ = nullptr;
    capacity_ = inline_size;
  }
  static constexpr std::uint32_t inline_size = 6;
  std::uint32_t size_ = 0, capacity_ = inline_size;
  std::int64_t* heap_ = nullptr;
  std::int64_t local_[inline_size] = {};
};

/// Converts an integer to int64. Values above 2^63 - 1 become that number, which is no valid axis, index or size of any array.
template <std::integral I> [[nodiscard]] constexpr std::int64_t to_int64(I i) {
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  if constexpr (std::is_unsigned_v<I> && sizeof(I) >= sizeof(largest))
    if (i > static_cast<I>(largest)) return largest;
  return static_cast<std::int64_t>(i);
}

/// The product of the sizes; 1 for a scalar. Throws ShapeError for a negative size, or if the product does not fit into 63 bits.
[[nodiscard]] SHARDARRAY_API std::int64_t num_elements(const Shape& s);
/// `[8,4]`; `[]` for a scalar's shape.
[[nodiscard]] SHARDARRAY_API std::string to_string(const Shape& s);
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const Shape& s);

}  // namespace shardarray

// A contiguous vector whose first N elements need no allocation.
#pragma once
#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace shardarray {

template <class T, std::size_t N> class SmallVector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;
  SmallVector() {}  // not defaulted: that would zero the storage
  explicit SmallVector(std::size_t n) { resize(n); }
  explicit SmallVector(std::span<const T> o) { append(o); }
  SmallVector(std::initializer_list<T> o) { append(o); }
  template <std::input_iterator It> SmallVector(It first, It last) {
    for (; first != last; ++first) push_back(*first);
  }
  SmallVector(const SmallVector& o) { copy(o); }
  SmallVector& operator=(const SmallVector& o) {
    if (this == &o) return *this;
    clear();
    copy(o);
    return *this;
  }
  SmallVector(SmallVector&& o) noexcept { *this = std::move(o); }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this == &o) return *this;
    clear();
    if (o.size_ <= N)
      for (T& x : o) new (few() + size_++) T(std::move(x));
    many_ = std::move(o.many_);
    size_ = o.size_;
    o.clear();
    return *this;
  }
  ~SmallVector() { clear(); }
  void push_back(const T& x) { emplace_back(x); }
  void push_back(T&& x) { emplace_back(std::move(x)); }
  template <class... A> void emplace_back(A&&... a) {
    if (size_ < N) new (few() + size_++) T(std::forward<A>(a)...);
    else push_back_many(T(std::forward<A>(a)...));
  }
  /// n >= size().
  void resize(std::size_t n) {
    while (size_ < n) push_back(T());
  }
  void pop_back() {
    if (size_ > N + 1) {
      many_.pop_back();
    } else if (size_ == N + 1) {  // the remaining N move back inline
      for (std::size_t k = 0; k < N; k++) new (few() + k) T(std::move(many_[k]));
      many_.clear();
    } else {
      few()[size_ - 1].~T();
    }
    size_--;
  }
  /// Inserts `x` before `at`.
  void insert(const T* at, T x) {
    const auto place = at - begin();
    push_back(std::move(x));
    std::rotate(begin() + place, end() - 1, end());
  }
  /// Inserts the elements of another container before `at`.
  template <std::input_iterator It> void insert(const T* at, It first, It last) {
    const auto place = at - begin(), old = std::ssize(*this);
    for (; first != last; ++first) push_back(*first);
    std::rotate(begin() + place, begin() + old, end());
  }
  void erase(const T* at) {
    T* const place = begin() + (at - begin());
    std::move(place + 1, end(), place);
    pop_back();
  }
  void clear() {
    if (size_ <= N)
      for (T& x : *this) x.~T();
    many_.clear();
    size_ = 0;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return size_ <= N ? few() : many_.data(); }
  const T* data() const { return const_cast<SmallVector&>(*this).data(); }
  T& operator[](std::size_t k) { return data()[k]; }
  const T& operator[](std::size_t k) const { return data()[k]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  friend bool operator==(const SmallVector& a, const SmallVector& b) { return std::ranges::equal(a, b); }
  friend auto operator<=>(const SmallVector& a, const SmallVector& b) requires std::three_way_comparable<T> {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void copy(const SmallVector& o) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      if (o.size_ <= N) {
        std::memcpy(storage_, o.storage_, o.size_ * sizeof(T));
        size_ = o.size_;
        return;
      }
    }
    append(o);
  }
  void append(std::span<const T> o) {
    for (const T& x : o) push_back(x);
  }
  void push_back_many(T x) {
    if (size_ == N) {  // all elements move to the heap
      many_.reserve(2 * N);
      for (T& y : *this) many_.push_back(std::move(y));
      for (std::size_t k = 0; k < N; k++) few()[k].~T();
    }
    many_.push_back(std::move(x));
    size_++;
  }
  T* few() { return std::launder(reinterpret_cast<T*>(storage_)); }
  alignas(T) std::byte storage_[N * sizeof(T)];  // NOLINT(bugprone-sizeof-expression): pointers too
  std::vector<T> many_;
  std::size_t size_ = 0;
};

}  // namespace shardarray

// A contiguous vector whose first N elements need no allocation.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace shardarray {

template <class T, std::size_t N> class SmallVector {
 public:
  SmallVector() {}  // not defaulted: the storage is not zeroed
  explicit SmallVector(std::size_t n) { resize(n); }
  explicit SmallVector(std::span<const T> o) { append(o); }
  SmallVector(std::initializer_list<T> o) { append(o); }
  SmallVector(const SmallVector& o) { append(o); }
  SmallVector& operator=(const SmallVector& o) {
    if (this == &o) return *this;
    clear();
    append(o);
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
  /// Grows to n elements.
  void resize(std::size_t n) {
    while (size_ < n) push_back(T());
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
  T& back() { return data()[size_ - 1]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  void append(std::span<const T> o) {
    for (const T& x : o) push_back(x);
  }
  void push_back_many(T x) {
    if (size_ == N) {  // all of them move out
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

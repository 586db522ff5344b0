// A vector whose first N elements need no allocation.
#pragma once
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace shardarray {

template <class T, std::size_t N> class SmallVector {
 public:
  SmallVector() {}  // not defaulted: the storage is not zeroed
  explicit SmallVector(std::size_t n) {
    for (std::size_t k = 0; k < n; k++) push_back(T());
  }
  SmallVector(const SmallVector& o) {
    for (const T& x : o) push_back(x);
  }
  SmallVector& operator=(const SmallVector& o) {
    if (this == &o) return *this;
    clear();
    for (const T& x : o) push_back(x);
    return *this;
  }
  SmallVector(SmallVector&& o) noexcept { *this = std::move(o); }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this == &o) return *this;
    clear();
    for (std::size_t k = 0; k < o.size_ && k < N; k++) new (at(k)) T(std::move(*o.at(k)));
    rest_ = std::move(o.rest_);
    size_ = o.size_;
    o.clear();
    return *this;
  }
  ~SmallVector() { clear(); }
  void push_back(T x) {
    if (size_ < N) new (at(size_)) T(std::move(x));
    else rest_.push_back(std::move(x));
    size_++;
  }
  void clear() {
    for (std::size_t k = 0; k < size_ && k < N; k++) at(k)->~T();
    rest_.clear();
    size_ = 0;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t k) { return k < N ? *at(k) : rest_[k - N]; }
  const T& operator[](std::size_t k) const { return const_cast<SmallVector&>(*this)[k]; }
  T& back() { return (*this)[size_ - 1]; }

  template <class V, class R> struct Iterator {
    V* v;
    std::size_t k;
    R& operator*() const { return (*v)[k]; }
    Iterator& operator++() {
      k++;
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.k == b.k; }
  };
  auto begin() { return Iterator<SmallVector, T>{this, 0}; }
  auto end() { return Iterator<SmallVector, T>{this, size_}; }
  auto begin() const { return Iterator<const SmallVector, const T>{this, 0}; }
  auto end() const { return Iterator<const SmallVector, const T>{this, size_}; }

 private:
  T* at(std::size_t k) { return std::launder(reinterpret_cast<T*>(storage_)) + k; }
  alignas(T) std::byte storage_[N * sizeof(T)];
  std::vector<T> rest_;
  std::size_t size_ = 0;
};

}  // namespace shardarray

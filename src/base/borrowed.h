// Borrowed<T>: a temporary T whose storage is kept by the thread for reuse.
#pragma once
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/per_thread.h"

namespace shardarray {

/// Largest vector capacity that is kept for reuse.
inline constexpr std::size_t most_borrowed = 4096;

/// A stack of spares rather than one object, because borrowing may nest. T::clear() releases what the object holds.
template <class T> class Borrowed {
 public:
  Borrowed() {
    auto& spare = spares();
    if (!spare.empty()) {
      object_ = std::move(spare.back());
      spare.pop_back();
    }
    if (!object_) object_ = std::make_unique<T>();
  }
  ~Borrowed() {
    object_->clear();
    spares().push_back(std::move(object_));
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  T& operator*() const { return *object_; }
  T* operator->() const { return object_.get(); }

 private:
  struct Spares : std::vector<std::unique_ptr<T>> {};
  static Spares& spares() { return PerThread<Spares>::get(); }
  std::unique_ptr<T> object_;
};

}  // namespace shardarray

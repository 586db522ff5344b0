// Borrowed<T>: a T for a moment, whose storage stays with the thread.
#pragma once
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/per_thread.h"

namespace shardarray {

/// Of a vector: whose storage is larger does not keep it.
inline constexpr std::size_t most_borrowed = 4096;

/// Taken and given back, since who has one may come by again before he is done. T::clear() lets go of what it holds.
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

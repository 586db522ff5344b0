// PerThread<T>: one T per thread, created at its first use.
//
// All per-thread state is kept this way. The library has no thread_local object with a destructor, since users may compute in destructors
// of their own thread_local and static objects and in atexit(): a T is destroyed after all C++ destructors of its thread, on the main
// thread never. A later use gets a new T. Thread-local storage only holds a pointer, because libraries opened at run time get little of it.
// T identifies the use: each use has its own type.
#pragma once
#include <memory>

namespace shardarray {

/// Calls end(object) when this thread ends, in reverse order.
void keep_for_thread(void* object, void (*end)(void*));

template <class T> class PerThread {
 public:
  static T& get() { return object_ != nullptr ? *object_ : make(); }
  /// Null if this thread has not used it.
  static T* find() { return object_; }

 private:
  [[gnu::cold, gnu::noinline]] static T& make() {
    auto fresh = std::make_unique<T>();
    keep_for_thread(fresh.get(), [](void* object) {
      object_ = nullptr;
      delete static_cast<T*>(object);
    });
    return *(object_ = fresh.release());
  }
  static inline constinit thread_local T* object_ = nullptr;
};

}  // namespace shardarray

// PerThread<T>: one T for each thread that asks, made at its first use.
//
// All state of threads is kept so. The library has no thread_local object with a destructor, since users may compute in
// destructors of their own thread_local and static objects and in atexit(): a T ends after all destructors of C++ of its
// thread, and that of the main thread never. A use still later gets a new T. In thread-local storage stands a pointer: a
// library that is opened at run time gets little of it. T names the use: a type of its own at each place.
#pragma once
#include <memory>

namespace shardarray {

/// Calls end(object) when this thread is over, the last one kept first.
void keep_for_thread(void* object, void (*end)(void*));

template <class T> class PerThread {
 public:
  static T& get() { return object_ != nullptr ? *object_ : make(); }
  /// Null: this thread has not asked for it.
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

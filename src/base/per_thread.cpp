#include "base/per_thread.h"

#include <pthread.h>

#include <new>
#include <utility>
#include <vector>

namespace shardarray {
namespace {

using Kept = std::vector<std::pair<void*, void (*)(void*)>>;

// Objects that are created during destruction go into a new list, for which the system calls this again.
void end_thread(void* list) {
  const std::unique_ptr<Kept> kept(static_cast<Kept*>(list));
  while (!kept->empty()) {
    const auto [object, end] = kept->back();
    kept->pop_back();
    end(object);
  }
}

// POSIX keys: their destructors run after those of thread_local objects, and not at exit().
pthread_key_t thread_key() {
  static const pthread_key_t key = [] {
    pthread_key_t k;
    if (pthread_key_create(&k, end_thread) != 0) throw std::bad_alloc();
    return k;
  }();
  return key;
}

}  // namespace

void keep_for_thread(void* object, void (*end)(void*)) {
  auto* kept = static_cast<Kept*>(pthread_getspecific(thread_key()));
  if (kept == nullptr) {
    auto fresh = std::make_unique<Kept>();
    if (pthread_setspecific(thread_key(), fresh.get()) != 0) throw std::bad_alloc();
    kept = fresh.release();
  }
  kept->emplace_back(object, end);
}

}  // namespace shardarray

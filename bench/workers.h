// Runs floors on all workers of the library's pool.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>

#include "runtime/pool.h"

namespace bench {

/// f(at, k) for pieces [at, at + k) of n elements; a small n is one piece on the calling thread.
template <class F> void on_all_workers(std::size_t n, F f) {
  static constexpr std::size_t piece = 1 << 14;
  if (n <= piece) return f(std::size_t{0}, n);
  struct Job {
    F* f;
    std::size_t n;
    std::atomic<std::size_t> next{0};
  } job{&f, n};
  shardarray::ThreadPool::instance().run(
      [](void* p) {
        Job& j = *static_cast<Job*>(p);
        for (std::size_t at; (at = j.next.fetch_add(piece)) < j.n;) (*j.f)(at, std::min(piece, j.n - at));
      },
      &job);
}

}  // namespace bench

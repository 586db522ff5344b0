// GPUs made of host memory: addresses that crash when the host touches them, streams that work in order on their own threads, with
// pauses.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "fake_capture.h"

namespace shardarray::testing {

/// SHARDARRAY_FAKE_SEED: other pauses and other orders for each.
inline unsigned fake_seed() {
  const char* const text = std::getenv("SHARDARRAY_FAKE_SEED");
  return text != nullptr ? static_cast<unsigned>(std::atoi(text)) : 0;
}

/// Blocks of memory by their first address.
class FakeBlocks {
 public:
  /// No address of a process has this bit, so that touching a device's address crashes.
  static constexpr std::uintptr_t tag = std::uintptr_t{1} << 60;
  static bool on_device(const void* p) { return (reinterpret_cast<std::uintptr_t>(p) & tag) != 0; }
  template <class T> static T* host(T* p) {
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(p) & ~tag);
  }

  /// 256-byte aligned, full of 0xff; null beyond the capacity.
  void* add(std::size_t bytes, std::uintptr_t bits) {
    const std::lock_guard lock(mutex_);
    if (bytes > capacity || held_ > capacity - bytes) return nullptr;
    const std::size_t whole = (bytes + 255) / 256 * 256;
    void* const p = std::aligned_alloc(256, whole);
    if (p == nullptr) return p;
    std::memset(p, 0xff, whole);
    held_ += bytes;
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(p) | bits;
    blocks_[address] = {bytes, p};
    return reinterpret_cast<void*>(address);
  }
  bool remove(void* p) {
    const std::lock_guard lock(mutex_);
    const auto it = blocks_.find(reinterpret_cast<std::uintptr_t>(p));
    if (it == blocks_.end()) return false;
    std::memset(it->second.memory, 0xff, it->second.bytes);
    asm volatile("" : : "r"(it->second.memory) : "memory");  // else what is written before a free is left out
    std::free(it->second.memory);
    held_ -= it->second.bytes;
    blocks_.erase(it);
    return true;
  }
  /// Bytes from p to the end of its block; 0 where there is none.
  std::size_t rest(const void* p) {
    const std::lock_guard lock(mutex_);
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    auto it = blocks_.upper_bound(address);
    if (it == blocks_.begin()) return 0;
    --it;
    const std::uintptr_t end = it->first + it->second.bytes;
    return address < end ? end - address : 0;
  }
  std::size_t held() {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  std::atomic<std::size_t> capacity = SIZE_MAX;

 private:
  struct Block {
    std::size_t bytes = 0;
    void* memory = nullptr;  // without the tag, as leak checkers look for it
  };
  std::mutex mutex_;
  std::map<std::uintptr_t, Block> blocks_;
  std::size_t held_ = 0;
};

/// What all streams share.
struct FakeWork {
  std::mutex mutex;
  std::condition_variable changed;
  bool held = false;
  int to_failure = -1, failure = 0;  // the piece after so many fails
  std::uint64_t done = 0;
};

/// One queue of work. After a failure nothing runs any more, and `status` stays.
class FakeStream {
 public:
  FakeStream(FakeWork& all, int on) : gpu(on), all_(all) {
    std::thread([this] { work(); }).detach();
  }
  const int gpu;

  /// Pieces are added here in place of being done, behind `last`. Not null: a graph is being captured.
  std::shared_ptr<FakeCapture> capture;
  std::vector<std::size_t> last;

  bool behind_kernel = false;  ///< what was asked last is one

  /// Returns the number of this piece.
  std::uint64_t ask(std::function<void()> piece, const void* kernel = nullptr) {
    const std::lock_guard lock(all_.mutex);
    behind_kernel = kernel != nullptr;
    if (capture != nullptr) {
      capture->add(std::move(piece), kernel, gpu, last);
      return asked_;
    }
    waiting_.push_back(std::move(piece));
    all_.changed.notify_all();
    return ++asked_;
  }
  int wait(std::uint64_t number) {
    std::unique_lock lock(all_.mutex);
    all_.changed.wait(lock, [&] { return done_ >= number; });
    return status_;
  }
  int wait() {
    std::unique_lock lock(all_.mutex);
    const std::uint64_t number = asked_;
    all_.changed.wait(lock, [&] { return done_ >= number; });
    return status_;
  }
  bool passed(std::uint64_t number) {
    const std::lock_guard lock(all_.mutex);
    return done_ >= number;
  }
  int status() {
    const std::lock_guard lock(all_.mutex);
    return status_;
  }
  bool busy() {
    const std::lock_guard lock(all_.mutex);
    return done_ < asked_;
  }

 private:
  void work() {
    std::mt19937 random(fake_seed() * 1000 + static_cast<unsigned>(gpu));
    for (;;) {
      std::unique_lock lock(all_.mutex);
      all_.changed.wait(lock, [&] { return !all_.held && !waiting_.empty(); });
      const auto next = std::move(waiting_.front());
      waiting_.pop_front();
      if (all_.to_failure >= 0 && all_.to_failure-- == 0) status_ = all_.failure;
      const bool runs = status_ == 0;
      lock.unlock();
      if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
      if (runs) next();
      lock.lock();
      done_++;
      all_.done++;
      all_.changed.notify_all();
    }
  }

  FakeWork& all_;
  std::deque<std::function<void()>> waiting_;
  std::uint64_t asked_ = 0, done_ = 0;
  int status_ = 0;
};

}  // namespace shardarray::testing

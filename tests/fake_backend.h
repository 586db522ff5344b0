// A GPU-like platform made of host memory: addresses that crash when the host touches them, asynchronous work, two memories, sticky
// failures.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/arena.h"
#include "runtime/devices.h"

namespace shardarray::testing {

/// Device addresses: no address of a process has these bits, so that touching one crashes.
class FakeMemory final : public MemorySource {
 public:
  static constexpr std::uintptr_t tag = std::uintptr_t{1} << 60;
  template <class T> static T* host(T* p) {
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(p) & ~tag);
  }
  void* map(std::size_t bytes) override {
    if (refuse) return nullptr;
    void* const p = system_memory().map(bytes);
    return p == nullptr ? p : reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(p) | tag);
  }
  void unmap(void* p, std::size_t bytes) override { system_memory().unmap(host(p), bytes); }
  void fill(void* p, unsigned char byte, std::size_t bytes) override { std::memset(host(p), byte, bytes); }
  bool refuse = false;
};

/// One queue of work, done in order by its own thread, with pauses. After a failure nothing runs any more.
class FakeQueue {
 public:
  FakeQueue() : worker_([this] { work(); }) { worker_.detach(); }

  class Ticket final : public Completion {
   public:
    Ticket(FakeQueue& queue, std::uint64_t number) : queue_(queue), number_(number) {}
    void wait() const override { queue_.wait(number_); }

   private:
    FakeQueue& queue_;
    std::uint64_t number_;
  };
  CompletionRef ask(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
    changed_.notify_all();
    return std::make_shared<Ticket>(*this, ++asked_);
  }
  /// While held, no work starts.
  void hold(bool on) {
    const std::lock_guard lock(mutex_);
    held_ = on;
    changed_.notify_all();
  }
  /// As after a reset of the device.
  void forget_failure() {
    const std::lock_guard lock(mutex_);
    failure_ = nullptr;
  }
  std::uint64_t done() {
    const std::lock_guard lock(mutex_);
    return done_;
  }

 private:
  void wait(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= number; });
    if (failure_ && number >= failed_) std::rethrow_exception(failure_);
  }
  void work() {
    std::mt19937 random(7);
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !held_ && !waiting_.empty(); });
      const auto next = std::move(waiting_.front());
      waiting_.pop_front();
      const bool failed = failure_ != nullptr;
      lock.unlock();
      std::exception_ptr failure;
      if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
      try {
        if (!failed) next();
      } catch (...) { failure = std::current_exception(); }
      lock.lock();
      done_++;
      if (failure) {
        failure_ = failure;
        failed_ = done_;
      }
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::uint64_t asked_ = 0, done_ = 0, failed_ = 0;
  bool held_ = false;
  std::exception_ptr failure_;
  std::thread worker_;
};

class FakeBackend final : public Backend {
 public:
  static constexpr int devices = 8, devices_a_memory = 4;
  std::vector<std::size_t> siblings;  ///< of the calls for several tiles at once: how many
  FakeBackend() {
    for (int d = 0; d < devices; d++) arenas_.emplace_back(this, d, &memory);
  }
  const char* platform() const override { return "fake"; }
  int device_count() const override { return devices; }
  const Target& target() const override { return target_; }
  Device device(int local) const override {
    Device d = Backend::device(local);
    d.memory = local / devices_a_memory;
    return d;
  }
  using Backend::allocate;
  BufferRef allocate(int device, std::size_t bytes) override {
    return BufferRef(arenas_.at(static_cast<std::size_t>(device)).allocate(bytes));
  }
  void allocate(std::span<const int> on, std::span<const std::uint64_t> bytes,
                std::span<BufferRef> to) override {
    siblings.push_back(on.size());
    Backend::allocate(on, bytes, to);
  }
  void deallocate(Buffer* b) override { arenas_[static_cast<std::size_t>(b->device)].deallocate(b); }
  void copy_from_host(const BufferRef& to, const void* from, std::size_t bytes) override {
    const auto* const first = static_cast<const std::byte*>(from);
    queue.ask([to = FakeMemory::host(to->data), staged = std::vector<std::byte>(first, first + bytes)] {
      if (!staged.empty()) std::memcpy(to, staged.data(), staged.size());
    });
  }
  void copy_to_host(void* to, const BufferRef& from, std::size_t bytes) override {
    wait(queue.ask([=, from = FakeMemory::host(from->data)] {
      if (bytes > 0) std::memcpy(to, from, bytes);
    }));
  }
  void copy(const BufferRef& to, const BufferRef& from, std::size_t bytes) override {
    if (from->owner != this) return Backend::copy(to, from, bytes);
    queue.ask([=, to = FakeMemory::host(to->data), from = FakeMemory::host(from->data)] {
      if (bytes > 0) std::memcpy(to, from, bytes);
    });
  }
  std::unique_ptr<Executable> load(std::shared_ptr<const Program> program) override {
    return std::make_unique<FakeExecutable>(*this, shardarray::backend("cpu").load(std::move(program)));
  }
  MemoryStats memory_stats(int device) const override {
    return arenas_.at(static_cast<std::size_t>(device)).stats();
  }

  FakeMemory memory;
  FakeQueue queue;
  std::atomic<int> runs_to_failure{-1};  ///< the run after so many fails; -1: none does

 private:
  class FakeExecutable final : public Executable {
   public:
    FakeExecutable(FakeBackend& owner, std::unique_ptr<Executable> real)
        : owner_(owner), real_(std::move(real)) {}
    CompletionRef run(std::span<void* const> bases, RunReport* report, std::uint64_t) const override {
      std::vector<void*> host;
      for (void* const b : bases) host.push_back(FakeMemory::host(b));
      const bool fails = owner_.runs_to_failure >= 0 && owner_.runs_to_failure-- == 0;
      return owner_.queue.ask([real = real_, report, fails, host = std::move(host)] {
        if (fails) throw TransportError("fake: a wire was cut");
        shardarray::wait(real->run(host, report));
      });
    }

   private:
    FakeBackend& owner_;
    std::shared_ptr<Executable> real_;
  };

  // Other numbers than the CPU's wherever there are some.
  const Target target_ = {.split = {.min_points = 64, .most_results = 100, .parts = 8},
                          .fusion = {.most_operations = 5, .enough_rows = 3, .few_points = 7},
                          .alignment = 1024,
                          .links = {.start = 1000, .halo_start = 300, .operation = 0.02},
                          .device_memory = 20'000};
  std::deque<Arena> arenas_;  // one per device; no element ever moves
};

/// The one of this process, whose platform is there from the first call on.
inline FakeBackend& fake_backend() {
  static const bool added = [] {
    add_platform("fake", []() -> std::unique_ptr<Backend> { return std::make_unique<FakeBackend>(); });
    return true;
  }();
  return static_cast<FakeBackend&>((void(added), backend("fake")));
}

}  // namespace shardarray::testing

// Several processes in one: each is a platform of its own with a part of the devices, runs in a thread, and sends its boxes through a
// hub, which delivers them late and in any order. Each sees itself as process 0, like this process, and numbers the others from there
// on.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "cuda/gpus_of_processes.h"
#include "cuda_fake.h"
#include "runtime/devices.h"
#include "runtime/fingerprint.h"
#include "runtime/processes.h"
#include "runtime/transport.h"
#include "shardarray/error.h"

namespace shardarray::testing {

/// Connects the processes, by its own numbering.
class Hub {
 public:
  Hub() : worker_([this] { work(); }) { worker_.detach(); }

  /// Called before a box is posted: it may throw, or return false to lose the box.
  std::function<bool(int from)> keeps = [](int) { return true; };
  std::function<void(int at)> before_complete = [](int) {};
  std::atomic<int> deadline_ms{60'000};
  std::atomic<int> posted{0}, completed{0};

  /// A run that two processes share, numbered in the order in which both begin them.
  struct Pair {
    int low, high;
    std::uint64_t number;
    auto operator<=>(const Pair&) const = default;
  };
  void begin(const Pair& pair, int who, std::uint64_t fingerprint) {
    std::vector<Half> ended;
    std::string divergence;
    {
      const std::lock_guard lock(mutex_);
      Shared& s = runs_[pair];
      s.open++;
      (who == pair.low ? s.low : s.high) = fingerprint;
      if (s.open == 2 && s.low != s.high) {
        s.failure = divergence =
            "loopback: processes run different programs at run " + std::to_string(pair.number);
        ended = take_all(s);
      }
    }
    for (const Half& h : ended) h.fail(divergence);
    if (divergence.empty()) return;
    leave(pair);
    throw TransportError(divergence);
  }
  void leave(const Pair& pair) {
    const std::lock_guard lock(mutex_);
    if (++runs_[pair].left == 2) runs_.erase(pair);
  }
  void look(const Pair& pair) {
    const std::lock_guard lock(mutex_);
    if (const auto run = runs_.find(pair); run != runs_.end() && !run->second.failure.empty())
      throw TransportError(run->second.failure);
  }
  void fail(const Pair& pair, const std::string& why) {
    std::vector<Half> ended;
    {
      const std::lock_guard lock(mutex_);
      Shared& s = runs_[pair];
      if (s.failure.empty()) s.failure = why;
      ended = take_all(s);
    }
    for (const Half& h : ended) h.fail(why);
  }
  void put(const Pair& pair, int from, bool sent, const Parcel& parcel, LateEnd end) {
    const Half half{parcel, end, Clock::now()};
    std::string failure;
    std::unique_lock lock(mutex_);
    Shared& s = runs_[pair];
    if (!s.failure.empty()) {
      failure = s.failure;
      lock.unlock();
      return half.fail(failure);
    }
    auto& other = s.waiting[!sent];
    const auto found = other.find({from, parcel.tag});
    if (found == other.end()) {
      s.waiting[sent].emplace(std::pair(from, parcel.tag), half);
      return;
    }
    std::pair<Half, Half> box{half, found->second};  // from, to
    if (!sent) std::swap(box.first, box.second);
    other.erase(found);
    if (random_() % 4 != 0) {
      boxes_.push_back(box);
      changed_.notify_all();
      return;
    }
    lock.unlock();
    deliver(box);
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Half {
    Parcel parcel;
    LateEnd end;
    Clock::time_point since;
    void fail(const std::string& why) const { end(std::make_exception_ptr(TransportError(why))); }
  };
  struct Shared {
    int open = 0, left = 0;
    std::uint64_t low = 0, high = 0;  // fingerprints
    std::string failure;
    std::map<std::pair<int, std::uint64_t>, Half> waiting[2];  // by sender and tag: receivers, senders
  };

  static std::vector<Half> take_all(Shared& s) {
    std::vector<Half> all;
    for (auto& side : s.waiting) {
      for (auto& [key, half] : side) all.push_back(half);
      side.clear();
    }
    return all;
  }
  static void deliver(const std::pair<Half, Half>& box) {
    const auto& [from, to] = box;
    if (from.parcel.bytes != to.parcel.bytes) {
      from.fail("loopback: sizes differ");
      to.fail("loopback: sizes differ");
      return;
    }
    if (to.parcel.bytes > 0) std::memcpy(to.parcel.memory, from.parcel.memory, to.parcel.bytes);
    from.end();
    to.end();
  }
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait_for(lock, std::chrono::milliseconds(20), [&] { return !boxes_.empty(); });
      std::vector<std::pair<Half, std::uint64_t>> late;
      const auto limit = std::chrono::milliseconds(deadline_ms.load());
      for (auto& [pair, s] : runs_)
        for (auto& side : s.waiting)
          for (auto it = side.begin(); it != side.end();) {
            if (Clock::now() - it->second.since < limit) {
              ++it;
              continue;
            }
            late.emplace_back(it->second, it->first.second);
            it = side.erase(it);
          }
      std::vector<std::pair<Half, Half>> boxes(boxes_.begin(), boxes_.end());
      boxes_.clear();
      std::shuffle(boxes.begin(), boxes.end(), random_);
      const bool pauses = random_() % 4 == 0;
      lock.unlock();
      if (pauses) std::this_thread::sleep_for(std::chrono::microseconds(50));
      for (const auto& [half, tag] : late)
        half.fail("loopback: nothing came of box " + std::to_string(tag) + " within the deadline");
      for (const auto& box : boxes) deliver(box);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Pair, Shared> runs_;
  std::deque<std::pair<Half, Half>> boxes_;
  std::mt19937 random_{7};
  std::thread worker_;
};

class LoopTransport final : public Transport {
 public:
  LoopTransport(Hub& hub, int own, int processes) : hub_(hub), own_(own), processes_(processes) {}

  std::unique_ptr<TransportRun> begin(std::span<const int> peers,
                                      std::shared_ptr<const Fingerprint> fingerprint,
                                      std::uint64_t numbers) override {
    auto run = std::make_unique<Run>(*this);
    for (const int p : peers) {
      const int peer = (p + own_) % processes_;
      Hub::Pair pair{std::min(own_, peer), std::max(own_, peer), 0};
      {
        const std::lock_guard lock(mutex_);
        pair.number = begun_[peer]++;
      }
      try {
        hub_.begin(pair, own_, hash_mix(fingerprint->value(), numbers));
      } catch (...) {
        run->fail(std::current_exception());
        throw;
      }
      run->pairs[p] = pair;
    }
    return run;
  }

 private:
  struct Run final : TransportRun {
    explicit Run(LoopTransport& t) : transport(t) {}
    ~Run() override {
      for (const auto& [p, pair] : pairs) transport.hub_.leave(pair);
    }
    void post(const Parcel& parcel, LateEnd ended) override {
      Hub& hub = transport.hub_;
      hub.posted++;
      if (!hub.keeps(transport.own_)) return ended();
      hub.put(pairs.at(parcel.peer), transport.own_, true, parcel, ended);
    }
    void complete(const Parcel& parcel, LateEnd ended) override {
      Hub& hub = transport.hub_;
      hub.completed++;
      hub.before_complete(transport.own_);
      hub.put(pairs.at(parcel.peer), (parcel.peer + transport.own_) % transport.processes_, false, parcel,
              ended);
    }
    void look() override {
      for (const auto& [p, pair] : pairs) transport.hub_.look(pair);
    }
    void fail(const std::exception_ptr& why) noexcept override {
      std::string text = "a failure";
      try {
        std::rethrow_exception(why);
      } catch (const std::exception& e) { text = e.what(); }
      const std::string all = "loopback: process " + std::to_string(transport.own_) + " failed: " + text;
      for (const auto& [p, pair] : pairs) transport.hub_.fail(pair, all);
    }
    LoopTransport& transport;
    std::map<int, Hub::Pair> pairs;  // by the peer's number as the program has it
  };

  Hub& hub_;
  int own_, processes_;
  std::mutex mutex_;
  std::map<int, std::uint64_t> begun_;
};

/// What processes compute on: "cpu" devices, or "cuda" ones as SHARDARRAY_TEST_WORLD says, of one GPU each, which NCCL joins
/// where there is one (tests/cuda/).
inline std::string world_platform() {
  const char* const said = std::getenv("SHARDARRAY_TEST_WORLD");
  return said != nullptr ? said : "cpu";
}

/// All processes, as seen by the backend of one.
class LoopProcesses final : public Processes {
 public:
  explicit LoopProcesses(Transport& t) : transport_(t) {}
  int index() const override { return 0; }
  int count() const override { return 1; }
  std::vector<std::string> all_gather(const std::string&, const std::string& mine) override { return {mine}; }
  Transport& transport() override { return transport_; }

 private:
  Transport& transport_;
};

/// The backend of one process, which has a part of the devices.
class ProcessBackend final : public Backend {
 public:
  ProcessBackend(Hub& hub, std::string name, int own, int processes, int devices)
      : transport_(hub, own, processes),
        others_(transport_),
        real_(world_platform() == "cpu" ? make_cpu_backend(devices, &transport_)
                                        : on_gpus(own, processes, devices)),
        name_(std::move(name)),
        own_(own),
        processes_(processes) {}
  const char* platform() const override { return name_.c_str(); }
  int device_count() const override { return real_->device_count(); }
  Device device(int local) const override { return global(own_ * device_count() + local); }
  std::vector<Device> devices() const override {
    std::vector<Device> all;
    for (int id = 0; id < processes_ * device_count(); id++) all.push_back(global(id));
    return all;
  }
  const Target& target() const override { return real_->target(); }
  using Backend::allocate;
  BufferRef allocate(int device, std::size_t bytes) override { return real_->allocate(device, bytes); }
  void deallocate(Buffer* b) override { real_->deallocate(b); }
  void copy_from_host(const BufferRef& to, const void* from, std::size_t bytes) override {
    real_->copy_from_host(to, from, bytes);
  }
  void copy_to_host(void* to, const BufferRef& from, std::size_t bytes) override {
    real_->copy_to_host(to, from, bytes);
  }
  std::unique_ptr<Executable> load(std::shared_ptr<const Program> program) override {
    return real_->load(std::move(program));
  }
  std::unique_ptr<Executable> load_part(std::shared_ptr<const LocalPart> part) override {
    return real_->load_part(std::move(part));
  }
  MemoryStats memory_stats(int device) const override { return real_->memory_stats(device); }

 private:
  Device global(int id) const {
    Device d;
    d.id = id;
    d.platform = d.kind = name_;
    d.process_index = (id / device_count() - own_ + processes_) % processes_;
    return d;
  }
  std::unique_ptr<Backend> on_gpus(int own, int processes, int devices) {
    cuda::UsedGpus used;
    for (int k = 0; k < processes; k++) {
      const int gpu = (own + k) % processes;
      used.numbers.push_back({gpu});
      used.uuids.push_back({std::to_string(gpu)});
      for (int d = 0; d < devices; d++) {
        Device& fresh = used.devices.emplace_back();
        fresh.id = static_cast<int>(used.devices.size()) - 1;
        fresh.platform = "cuda";
        fresh.process_index = k;
      }
    }
    used.memory = std::uint64_t{1} << 30;
    used.by_nccl = std::getenv("SHARDARRAY_FAKE_NCCL") != nullptr;
    return fake_control().make_process(
        used, []() -> Backend& { return backend("cpu"); }, &others_);
  }
  LoopTransport transport_;
  LoopProcesses others_;
  std::unique_ptr<Backend> real_;
  std::string name_;
  int own_, processes_;
};

/// This many processes, with eight devices in all.
class World {
 public:
  explicit World(int processes) : size(processes) {
    if (world_platform() != "cpu") fake_control();  // which opens the plug-in
    for (int p = 0; p < processes; p++) {
      names.push_back("p" + std::to_string(p) + "of" + std::to_string(processes));
      making() = {&hub, names.back(), p, processes};
      add_platform(names.back(), [] {
        const Making& m = making();
        return std::unique_ptr<Backend>(
            std::make_unique<ProcessBackend>(*m.hub, m.name, m.own, m.processes, 8 / m.processes));
      });
      backend(names.back());
    }
  }
  static World& of(int processes) {
    static World& two = *new World(2);
    static World& four = *new World(4);
    return processes == 2 ? two : four;
  }

  /// Runs f(number, devices) in every process at once; what each returned or threw.
  template <class F> auto run(F f) {
    using Result = decltype(f(0, std::vector<Device>()));
    std::vector<std::future<Result>> all;
    for (int p = 0; p < size; p++)
      all.push_back(std::async(std::launch::async, [this, f, p] {
        return f(p, shardarray::devices(names[static_cast<std::size_t>(p)]));
      }));
    for (auto& one : all) one.wait();
    return all;
  }

  const int size;
  Hub hub;
  std::vector<std::string> names;

 private:
  struct Making {
    Hub* hub;
    std::string name;
    int own, processes;
  };
  static Making& making() {
    static Making& m = *new Making{};
    return m;
  }
};

}  // namespace shardarray::testing

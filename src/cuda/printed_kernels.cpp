#include "cuda/printed_kernels.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/codegen_mode.h"
#include "cuda/compiler.h"
#include "runtime/object_cache.h"
#include "shardarray/error.h"

// NOLINTNEXTLINE(bugprone-reserved-identifier): the ABI's name
extern "C" __attribute__((visibility("hidden"))) void* __dso_handle;  // the linker's: of this plug-in

namespace shardarray::cuda {
namespace {

// The run of a program that asks for printed kernels: compiling them takes as long as thousands of launches.
constexpr int asking_run = 3;

/// What was loaded stays loaded: work that uses it may be under way when its program goes. Never destroyed.
class LoadedTexts {
 public:
  Library get(Gpu& gpu, const std::string& text) {
    const std::string architecture = architecture_name(gpu.properties().major, gpu.properties().minor);
    const Nvrtc& compiler = nvrtc();
    const std::string key = code_key(compiler, text, architecture);
    const std::lock_guard lock(mutex_);
    Library& known = known_[fmt::format("{}\n", gpu.number()) + text];
    if (known == nullptr) known = load(gpu, compiler, text, key, architecture);
    return known;
  }

 private:
  Library load(Gpu& gpu, const Nvrtc& compiler, const std::string& text, const std::string& key,
               const std::string& architecture) {
    if (const auto kept = cache_.find(key)) {
      try {
        return gpu.load(*kept);
      } catch (const DeviceError&) {}  // as good as none
    }
    const std::vector<char> cubin = compile_text(compiler, text, architecture);
    const Library library = gpu.load(cubin);
    cache_.put(key, cubin);
    return library;
  }

  std::mutex mutex_;
  ObjectCache cache_{object_cache_folder()};
  std::unordered_map<std::string, Library> known_;
};
LoadedTexts& loaded_texts() {
  static LoadedTexts& texts = *new LoadedTexts;
  return texts;
}

/// Whoever compiles holds it. NVRTC's static objects, some of which are made while it works, go at exit(), the last one first: from
/// before then nothing is compiled any more. exit() begins with what its own thread ends with, as a rule the main one; where
/// another thread calls it, what was told it after the first uses closes the gate. Never destroyed.
class BuildGate {
 public:
  static BuildGate& instance() {
    static BuildGate& gate = *new BuildGate;
    return gate;
  }
  /// Calls f, one caller at a time, or not at all.
  template <class F> void pass(const F& f) {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    f();
    constexpr int few = 8;
    if (exits_++ < few) std::atexit([] { instance().close(); });
  }
  /// By whoever may be the main thread. Not with a thread_local object: a library that is opened at run time gets little of them.
  void watch_thread() {
    if (gettid() != getpid() || watched_.exchange(true)) return;
    abi::__cxa_thread_atexit([](void*) { instance().close(); }, nullptr, &__dso_handle);
  }

 private:
  void close() {
    const std::lock_guard lock(mutex_);  // nobody is in the middle of it
    closed_ = true;
  }
  std::mutex mutex_;
  bool closed_ = false;
  std::atomic<bool> watched_ = false;  // the main thread
  int exits_ = 0;                      // how often exit() was told
};

}  // namespace

/// The thread that builds; never destroyed.
class BuildThread {
 public:
  void add(const std::shared_ptr<PrintedKernels>& kernels) {
    const std::lock_guard lock(mutex_);
    if (!runs_) std::thread([this] { work(); }).detach();
    runs_ = true;
    waiting_.push_back(kernels);
    changed_.notify_one();
  }

 private:
  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !waiting_.empty(); });
      const std::weak_ptr<PrintedKernels> next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      BuildGate::instance().pass([&] {
        if (const auto kernels = next.lock()) kernels->build_or_say();
      });
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::weak_ptr<PrintedKernels>> waiting_;
  bool runs_ = false;
};

Library loaded_text(Gpu& gpu, const std::string& text) { return loaded_texts().get(gpu, text); }

void PrintedKernels::begin() {
  if (codegen_mode_of_environment() == CodegenMode::always) {
    BuildGate::instance().watch_thread();
    BuildGate::instance().pass([&] { build_or_say(); });
  } else {
    runs_until_asked_ = asking_run;
  }
}

// Whoever calls it has passed the gate: one caller at a time.
void PrintedKernels::build_or_say() {
  static auto& said = *new std::set<std::string>;
  try {
    build();
  } catch (const std::exception& e) {
    failed_.store(true, std::memory_order_release);
    if (said.insert(without_).second) fmt::print(stderr, "shardarray: {} {}\n", e.what(), without_);
  }
}

void PrintedKernels::expect_runs() {
  int runs = runs_until_asked_.load(std::memory_order_relaxed);
  while (runs > 1 && !runs_until_asked_.compare_exchange_weak(runs, 1)) {}
}

void PrintedKernels::count_run() {
  if (runs_until_asked_.load(std::memory_order_relaxed) <= 0 || runs_until_asked_.fetch_sub(1) != 1) return;
  static BuildThread& builder = *new BuildThread;
  BuildGate::instance().watch_thread();
  builder.add(shared_from_this());
}

}  // namespace shardarray::cuda

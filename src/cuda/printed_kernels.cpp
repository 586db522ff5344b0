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
extern "C" __attribute__((visibility("hidden"))) void* __dso_handle;  // from the linker, of this plug-in

namespace shardarray::cuda {
namespace {

// The run that triggers building a program's printed kernels: compiling them costs as much as thousands of launches.
constexpr int asking_run = 3;

/// Loaded libraries are never unloaded: work that uses them may be in flight when their program goes. Never destroyed.
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
      } catch (const DeviceError&) {}  // as if it were not cached
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

/// Held while compiling. NVRTC's static objects, some created during its work, are destroyed by exit(), in reverse order: compilation must
/// stop before. exit() first runs the thread-exit handlers of its own thread, usually the main one; if another thread calls it, the atexit
/// handlers registered after the first uses close the gate. Never destroyed.
class BuildGate {
 public:
  static BuildGate& instance() {
    static BuildGate& gate = *new BuildGate;
    return gate;
  }
  /// Calls f, one caller at a time, unless the gate is closed.
  template <class F> void pass(const F& f) {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    f();
    constexpr int few = 8;
    if (exits_++ < few) std::atexit([] { instance().close(); });
  }
  /// Called by any thread, for the main one. Without a thread_local object: a library loaded at run time gets little static TLS.
  void watch_thread() {
    if (gettid() != getpid() || watched_.exchange(true)) return;
    abi::__cxa_thread_atexit([](void*) { instance().close(); }, nullptr, &__dso_handle);
  }

 private:
  void close() {
    const std::lock_guard lock(mutex_);  // waits for a running compilation
    closed_ = true;
  }
  std::mutex mutex_;
  bool closed_ = false;
  std::atomic<bool> watched_ = false;  // by the main thread
  int exits_ = 0;                      // atexit handlers registered
};

}  // namespace

/// The background thread that builds; never destroyed.
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

// The caller holds the gate.
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

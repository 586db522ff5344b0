#include "runtime/platforms.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <utility>

#include "base/key.h"
#include "runtime/devices.h"
#include "runtime/processes.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

/// A plug-in that is missing has no devices.
std::unique_ptr<Backend> make_cuda_backend() {
  try {
    return static_cast<const BackendPlugin&>(open_plugin(plugin_path("cuda"), "cuda", "an NVIDIA driver"))
        .make([]() -> Backend& { return backend("cpu"); });
  } catch (const CompileError& e) { throw DeviceError(e.text()); }
}

/// Of all processes that this one was started with.
std::unique_ptr<Backend> make_cpu_of_processes() {
  const int own = cpu_device_count();
  Processes* const all = other_processes();
  if (all == nullptr) return make_cpu_backend(own);
  return make_cpu_backend(own, &all->transport(), devices_of_processes(*all, "cpu", own));
}

struct Platform {
  std::string name;
  BackendFactory make;
  Backend* backend = nullptr;   // the one in use; null: not made yet
  std::uint64_t number = 0;     // of that
  std::vector<Device> devices;  // of the one that was made
  std::vector<Device> known;    // of the one in use, in order of id
  std::vector<int> local;       // their numbers within it; -1: another process has it
};

struct Registry {
  std::mutex mutex;
  std::deque<Platform> platforms{{"cpu", make_cpu_of_processes, nullptr, 0, {}, {}, {}},
                                 {"cuda", make_cuda_backend, nullptr, 0, {}, {}, {}}};
};
Registry& registry() {
  static Registry& r = *new Registry;  // never destroyed
  return r;
}

/// What follows is under the registry's lock. Null: unknown.
Platform* known_platform(Registry& r, std::string_view name) {
  for (Platform& p : r.platforms)
    if (p.name == (name == "gpu" ? "cuda" : name)) return &p;
  return nullptr;
}
std::string all_names(const Registry& r) {
  std::string all;
  for (const Platform& p : r.platforms) all += fmt::format("{}'{}'", all.empty() ? "" : ", ", p.name);
  return all;
}

std::atomic<bool> others_known{false};

void use_backend(Platform& p, Backend* b) {
  p.backend = b;
  p.number = unique_id();
  p.known = b->devices();
  if (spans_processes(p.known)) others_known = true;
  p.local.clear();
  int local = 0;
  for (const Device& d : p.known) p.local.push_back(d.process_index == process_index() ? local++ : -1);
}
/// Where the device stands among the known ones, or behind them.
std::size_t place_of(const Platform& p, int id) {
  const auto at = std::lower_bound(p.known.begin(), p.known.end(), id,
                                   [](const Device& d, int wanted) { return d.id < wanted; });
  const bool found = at != p.known.end() && at->id == id;
  return found ? static_cast<std::size_t>(at - p.known.begin()) : p.known.size();
}

/// Made.
Platform& made_platform(Registry& r, const char* function, std::string_view name) {
  Platform* const p = known_platform(r, name);
  if (p == nullptr)
    throw DeviceError(
        fmt::format("{}: the platform '{}' is unknown. This process has the platforms {}. Use one of them.",
                    function, name, all_names(r)));
  if (p->backend != nullptr) return *p;
  std::unique_ptr<Backend> made = p->make();
  p->devices = made->devices();
  use_backend(*p, made.release());  // never destroyed: buffers may die after static objects
  return *p;
}

}  // namespace

bool has_other_processes() { return others_known.load(std::memory_order_relaxed); }

void add_platform(std::string name, BackendFactory make) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (known_platform(r, name) != nullptr)
    throw DeviceError(fmt::format(
        "add_platform: there is a platform '{}' already. Names are unique. Choose another.", name));
  r.platforms.push_back({std::move(name), make, nullptr, 0, {}, {}, {}});
}

Backend& backend(const char* function, std::string_view name) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return *made_platform(r, function, name).backend;
}

std::uint64_t backend_number(std::string_view name) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return made_platform(r, "backend", name).number;
}

std::vector<Device> platform_devices(const char* function, std::string_view name) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return made_platform(r, function, name).devices;
}

std::optional<Device> known_device(const char* function, std::string_view name, int id) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const Platform& p = made_platform(r, function, name);
  const std::size_t at = place_of(p, id);
  return at == p.known.size() ? std::nullopt : std::optional(p.known[at]);
}

int local_number(const char* function, std::string_view name, int id) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const Platform& p = made_platform(r, function, name);
  const std::size_t at = place_of(p, id);
  return at == p.known.size() ? -1 : p.local[at];
}

// ---------------------------------------------------------------- the default

namespace {

std::atomic<bool> gpu_found{false};

/// Asked of the driver alone, so that machines without a GPU never look for the plug-in. A driver that does not work may have one:
/// the plug-in knows what is wrong.
bool driver_may_show_gpus() {
  constexpr int ok = 0, stub_library = 34, no_device = 100;             // CUresult
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);  // kept: the plug-in uses it too
  if (driver == nullptr) return false;
  const auto init = reinterpret_cast<int (*)(unsigned flags)>(dlsym(driver, "cuInit"));
  const auto count_devices = reinterpret_cast<int (*)(int* to)>(dlsym(driver, "cuDeviceGetCount"));
  if (init == nullptr || count_devices == nullptr) return false;
  const int status = init(0);
  if (status == no_device || status == stub_library) return false;
  int count = 0;
  return status != ok || count_devices(&count) != ok || count > 0;
}

std::string found_platform() {
  if (cpu_devices_were_set() || !driver_may_show_gpus()) return "cpu";
  try {
    backend("devices", "cuda");
    gpu_found = true;
    return "cuda";
  } catch (const Error& e) {
    fmt::print(stderr,
               "shardarray: {} Arrays go to the CPU; SHARDARRAY_PLATFORM=cpu says so without this message.\n",
               e.text());
    return "cpu";
  }
}

std::string chosen_platform() {
  const char* const said = std::getenv("SHARDARRAY_PLATFORM");
  if (said == nullptr || *said == 0) return found_platform();
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const Platform* const p = known_platform(r, said);
  if (p == nullptr)
    throw DeviceError(
        fmt::format("environment: SHARDARRAY_PLATFORM={} is not understood. This process has the platforms "
                    "{}. Correct the variable or unset it.",
                    said, all_names(r)));
  return p->name;
}

}  // namespace

const std::string& default_platform() {
  static const auto& chosen = *new std::string(chosen_platform());  // never destroyed
  return chosen;
}

bool default_was_found() { return gpu_found.load(std::memory_order_relaxed); }

Backend* set_backend(std::string_view name, Backend* b) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  Platform& p = made_platform(r, "set_backend", name);
  Backend* const before = p.backend;
  use_backend(p, b);
  return before;
}

}  // namespace shardarray

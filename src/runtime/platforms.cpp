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

/// If the plug-in is missing, other processes still wait for this one's devices: tell them before failing.
std::unique_ptr<Backend> make_cuda_backend() {
  Processes* const all = other_processes();
  const BackendPlugin* plugin = nullptr;
  try {
    plugin = static_cast<const BackendPlugin*>(&open_plugin(plugin_path("cuda"), "cuda", "an NVIDIA driver"));
  } catch (const CompileError& e) {
    if (all != nullptr) all->all_gather("devices of cuda", e.text());
    throw DeviceError(e.text());
  }
  try {
    return plugin->make([]() -> Backend& { return backend("cpu"); }, all);
  } catch (const CompileError& e) { throw DeviceError(e.text()); }
}

std::atomic<bool> gpus_everywhere{false};  // every process would choose GPUs

bool finds_gpus();

/// A backend over all processes that were launched together.
std::unique_ptr<Backend> make_cpu_of_processes() {
  Processes* const all = other_processes();
  const bool finds = all != nullptr && finds_gpus();  // before the number of devices is fixed
  const int own = cpu_device_count();
  if (all == nullptr) return make_cpu_backend(own);
  std::vector<int> counts;
  bool everywhere = true;
  for (const std::string& said :
       all->all_gather("devices of cpu", fmt::format("{} {}", own, finds ? 1 : 0))) {
    counts.push_back(std::stoi(said));
    everywhere &= said.ends_with(" 1");
  }
  gpus_everywhere = everywhere;
  return make_cpu_backend(own, &all->transport(), devices_of_processes("cpu", counts));
}

/// A backend in use. Immutable and never destroyed, so that evaluations read it without a lock.
struct Made {
  std::string name;  // of the platform
  Backend* backend;
  std::uint64_t number;
  std::vector<Device> devices;  // of the platform's first backend
  std::vector<Device> known;    // of this backend, ordered by id
  std::vector<int> local;       // their numbers within it, or -1 if another process has it
  const Made* before;           // of any platform
};

struct Platform {
  std::string name;
  BackendFactory make;
};

struct Registry {
  std::mutex mutex;
  std::deque<Platform> platforms{{"cpu", make_cpu_of_processes}, {"cuda", make_cuda_backend}};
  std::atomic<const Made*> newest{nullptr};
};
Registry& registry() {
  static Registry& r = *new Registry;  // never destroyed
  return r;
}

std::string_view own_name(std::string_view name) { return name == "gpu" ? "cuda" : name; }
/// The backend in use of a platform, or null.
const Made* find_made(const Registry& r, std::string_view name) {
  const Made* m = r.newest.load(std::memory_order_acquire);
  while (m != nullptr && m->name != own_name(name)) m = m->before;
  return m;
}

/// From here on under the registry's lock. Null: unknown.
const Platform* known_platform(const Registry& r, std::string_view name) {
  for (const Platform& p : r.platforms)
    if (p.name == own_name(name)) return &p;
  return nullptr;
}
std::string all_names(const Registry& r) {
  std::string all;
  for (const Platform& p : r.platforms) all += fmt::format("{}'{}'", all.empty() ? "" : ", ", p.name);
  return all;
}

std::atomic<bool> others_known{false};

/// A backend's device list. One that lists only its own devices belongs to this process alone.
std::vector<Device> devices_of(const Backend& b) {
  std::vector<Device> all = b.devices();
  if (std::ssize(all) == b.device_count())
    for (Device& d : all) d.process_index = process_index();
  return all;
}

const Made& use_backend(Registry& r, const std::string& name, Backend* b, std::vector<Device> devices) {
  std::vector<Device> known = devices_of(*b);
  if (spans_processes(known)) others_known = true;
  std::vector<int> local;
  int next = 0;
  local.reserve(known.size());
  for (const Device& d : known) local.push_back(d.process_index == process_index() ? next++ : -1);
  const Made* const made = new Made{name,
                                    b,
                                    unique_id(),
                                    std::move(devices),
                                    std::move(known),
                                    std::move(local),
                                    r.newest.load(std::memory_order_relaxed)};
  r.newest.store(made, std::memory_order_release);
  return *made;
}
/// The index of a device among the known ones, or their number if absent.
std::size_t place_of(const Made& m, int id) {
  const auto at = std::lower_bound(m.known.begin(), m.known.end(), id,
                                   [](const Device& d, int wanted) { return d.id < wanted; });
  const bool found = at != m.known.end() && at->id == id;
  return found ? static_cast<std::size_t>(at - m.known.begin()) : m.known.size();
}

/// The backend in use; makes it if there is none. Must not hold the lock.
const Made& made_platform(const char* function, std::string_view name) {
  Registry& r = registry();
  if (const Made* const m = find_made(r, name)) return *m;
  // All processes must make platforms in the same order: whether CUDA needs the CPU backend may differ between them, so that comes first.
  if (own_name(name) == "cuda" && other_processes() != nullptr) made_platform(function, "cpu");
  const std::lock_guard lock(r.mutex);
  if (const Made* const m = find_made(r, name)) return *m;
  const Platform* const p = known_platform(r, name);
  if (p == nullptr)
    throw DeviceError(
        fmt::format("{}: the platform '{}' is unknown. This process has the platforms {}. Use one of them.",
                    function, name, all_names(r)));
  std::unique_ptr<Backend> made = p->make();
  std::vector<Device> devices = devices_of(*made);
  return use_backend(r, p->name, made.release(), std::move(devices));  // buffers may outlive static objects
}

}  // namespace

bool has_other_processes() { return others_known.load(std::memory_order_relaxed); }

void add_platform(std::string name, BackendFactory make) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (known_platform(r, name) != nullptr)
    throw DeviceError(fmt::format(
        "add_platform: there is a platform '{}' already. Names are unique. Choose another.", name));
  r.platforms.push_back({std::move(name), std::move(make)});
}

Backend& backend(const char* function, std::string_view name) {
  return *made_platform(function, name).backend;
}

std::uint64_t backend_number(std::string_view name) { return made_platform("backend", name).number; }

std::vector<Device> platform_devices(const char* function, std::string_view name) {
  return made_platform(function, name).devices;
}

std::optional<Device> known_device(const char* function, std::string_view name, int id) {
  const Made& m = made_platform(function, name);
  const std::size_t at = place_of(m, id);
  return at == m.known.size() ? std::nullopt : std::optional(m.known[at]);
}

int local_number(const char* function, std::string_view name, int id) {
  const Made& m = made_platform(function, name);
  const std::size_t at = place_of(m, id);
  return at == m.known.size() ? -1 : m.local[at];
}

// ---------------------------------------------------------------- the default

namespace {

std::atomic<bool> gpu_found{false};

/// Only asks the driver, so that machines without a GPU never load the plug-in. A failing driver counts as a GPU: the plug-in then reports
/// the reason.
bool driver_may_show_gpus() {
  constexpr int ok = 0, stub_library = 34, no_device = 100;             // CUresult
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);  // stays open: the plug-in uses it too
  if (driver == nullptr) return false;
  const auto init = reinterpret_cast<int (*)(unsigned flags)>(dlsym(driver, "cuInit"));
  const auto count_devices = reinterpret_cast<int (*)(int* to)>(dlsym(driver, "cuDeviceGetCount"));
  if (init == nullptr || count_devices == nullptr) return false;
  const int status = init(0);
  if (status == no_device || status == stub_library) return false;
  int count = 0;
  return status != ok || count_devices(&count) != ok || count > 0;
}

/// Whether GPUs would be the default, as far as this process knows.
bool finds_gpus() {
  const char* const said = std::getenv("SHARDARRAY_PLATFORM");
  return (said == nullptr || *said == 0) && !cpu_devices_were_set() && driver_may_show_gpus();
}

std::string found_platform() {
  if (!finds_gpus()) return "cpu";
  try {
    if (other_processes() != nullptr) {
      backend("devices", "cpu");  // tells the processes about each other
      if (!gpus_everywhere)
        throw DeviceError(
            "devices: this process finds a GPU and another one does not, or has said that it wants CPU "
            "devices.");
    }
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
  const Made& before = made_platform("set_backend", name);
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  use_backend(r, before.name, b, before.devices);
  return before.backend;
}

}  // namespace shardarray

#include "runtime/platforms.h"

#include <fmt/format.h>

#include <deque>
#include <mutex>
#include <utility>

#include "runtime/cpu_device_count.h"
#include "runtime/devices.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

struct Platform {
  std::string name;
  BackendFactory make;
  Backend* backend = nullptr;   // the one in use; null: not made yet
  std::vector<Device> devices;  // of the one that was made
};

struct Registry {
  std::mutex mutex;
  std::deque<Platform> platforms{{"cpu", [] { return make_cpu_backend(cpu_device_count()); }, nullptr, {}}};
};
Registry& registry() {
  static Registry& r = *new Registry;  // never destroyed
  return r;
}

/// Made, under the registry's lock.
Platform& platform(Registry& r, const char* function, std::string_view name) {
  std::string known;
  for (Platform& p : r.platforms) {
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", p.name);
    if (p.name != name) continue;
    if (p.backend != nullptr) return p;
    std::unique_ptr<Backend> made = p.make();
    for (int k = 0; k < made->device_count(); k++) p.devices.push_back(made->device(k));
    p.backend = made.release();  // never destroyed: buffers may die after static objects
    return p;
  }
  throw DeviceError(
      fmt::format("{}: the platform '{}' is unknown. This process has the platforms {}. Use one of them.",
                  function, name, known));
}

}  // namespace

void add_platform(std::string name, BackendFactory make) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  for (const Platform& p : r.platforms)
    if (p.name == name)
      throw DeviceError(fmt::format(
          "add_platform: there is a platform '{}' already. Names are unique. Choose another.", name));
  r.platforms.push_back({std::move(name), make, nullptr, {}});
}

Backend& backend(const char* function, std::string_view name) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return *platform(r, function, name).backend;
}

std::vector<Device> platform_devices(const char* function, std::string_view name) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return platform(r, function, name).devices;
}

Backend* set_backend(std::string_view name, Backend* b) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return std::exchange(platform(r, "set_backend", name).backend, b);
}

}  // namespace shardarray

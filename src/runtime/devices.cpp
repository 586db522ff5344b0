#include "runtime/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/env.h"
#include "runtime/modes.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

constexpr int most_devices = 4096;

struct Registry {
  std::mutex mutex;
  int cpu_devices = 0;     // 0: not chosen yet
  bool used = false;       // devices were handed out: the number stays
  Backend* cpu = nullptr;  // the one in use
};

Registry& registry() {
  static Registry& r = *new Registry;  // never destroyed
  return r;
}

/// The number of CPU devices, fixed from now on.
int cpu_device_count(Registry& r) {
  if (r.cpu_devices == 0)
    r.cpu_devices = count_from_environment("SHARDARRAY_CPU_DEVICES", most_devices).value_or(1);
  r.used = true;
  return r.cpu_devices;
}

void check_platform(const char* function, std::string_view platform) {
  if (platform == "cpu") return;
  throw DeviceError(
      fmt::format("{}: the platform '{}' is unknown. This process has the platforms 'cpu'. Use one of them.",
                  function, platform));
}

}  // namespace

std::optional<int> count_from_environment(const char* variable, int max) {
  try {
    const std::int64_t n = env_int(variable, 0, 1, max);
    return n == 0 ? std::nullopt : std::optional(static_cast<int>(n));
  } catch (const Error& e) { throw DeviceError(e.what()); }
}

std::vector<Device> devices(std::string_view platform) {
  if (!platform.empty()) check_platform("devices", platform);
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  std::vector<Device> all(static_cast<std::size_t>(cpu_device_count(r)));
  for (std::size_t k = 0; k < all.size(); k++) all[k].id = static_cast<int>(k);
  return all;
}

std::vector<Device> local_devices() { return devices(); }

int device_count() {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return cpu_device_count(r);
}

int local_device_count() { return device_count(); }
int process_index() { return 0; }
int process_count() { return 1; }

void set_cpu_device_count(int n) {
  if (n < 1 || n > most_devices) {
    throw DeviceError(
        fmt::format("set_cpu_device_count: the number is {}. It must be from 1 to {}. Choose another number.",
                    n, most_devices));
  }
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (r.used && n != r.cpu_devices) {
    throw DeviceError(fmt::format(
        "set_cpu_device_count: {} devices asked for, but {} are in use already. The number is fixed at the "
        "first use of a device. Call it first in main, or set SHARDARRAY_CPU_DEVICES={}.",
        n, r.cpu_devices, n));
  }
  r.cpu_devices = n;
}

const Device& current_default_device() { return default_device_of(current_modes()); }

static void set_default_device(const std::optional<Device>& d) {
  Modes m = current_modes();
  m.default_device = d;
  set_modes(m);
}

void need_devices(const char* function, std::span<const Device> given) {
  for (const Device& d : given) {
    check_platform(function, d.platform);
    const int n = backend(d.platform).device_count();
    if (d.id >= 0 && d.id < n) continue;
    throw DeviceError(fmt::format(
        "{}: there is no device {}:{}. There are {} devices, numbered from 0. Use one of devices().",
        function, d.platform, d.id, n));
  }
}

default_device::default_device(const Device& d) : previous_(current_modes().default_device) {
  need_devices("default_device", {&d, 1});
  set_default_device(d);
}

default_device::~default_device() { set_default_device(previous_); }

DeviceGrid create_device_mesh(const Shape& shape, std::vector<Device> given) {
  DeviceGrid grid{shape, given.empty() ? devices() : std::move(given)};
  const auto n = static_cast<std::int64_t>(grid.devices.size());
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  bool valid = true;
  for (std::int64_t& size : grid.shape) {
    if (size == -1 && open == nullptr) {
      open = &size;
    } else if (size < 1 || size > n) {
      valid = false;
    } else {
      known = std::min(known * size, n + 1);  // more than n is wrong, however much
    }
  }
  if (open != nullptr && valid && n % known == 0) {
    *open = n / known;
    known = n;
  }
  if (!valid || known != n) {
    throw DeviceError(fmt::format(
        "create_device_mesh: the shape {} does not fit {} devices. Its sizes must multiply to the number of "
        "devices; one of them may be -1. Change the shape or pass that many devices.",
        to_string(shape), n));
  }
  return grid;
}

Backend& backend(const std::string& platform) {
  check_platform("backend", platform);
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  // Never destroyed: buffers may die after static objects.
  if (r.cpu == nullptr) r.cpu = make_cpu_backend(cpu_device_count(r)).release();
  return *r.cpu;
}

Backend* set_backend(const std::string& platform, Backend* b) {
  Backend& before = backend(platform);
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.cpu = b;
  return &before;
}

}  // namespace shardarray

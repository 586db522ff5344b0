#include "runtime/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/count_text.h"
#include "base/env.h"
#include "runtime/modes.h"
#include "runtime/processes.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

constexpr int most_devices = 4096;

struct CpuDevices {
  std::mutex mutex;
  int count = 0;      // 0: not chosen yet
  bool set = false;   // by the program
  bool used = false;  // the count was read: it is fixed
};
CpuDevices& cpu_devices() {
  static CpuDevices& c = *new CpuDevices;  // never destroyed
  return c;
}

}  // namespace

int cpu_device_count() {
  CpuDevices& c = cpu_devices();
  const std::lock_guard lock(c.mutex);
  if (c.count == 0) c.count = count_from_environment("SHARDARRAY_CPU_DEVICES", most_devices).value_or(1);
  c.used = true;
  return c.count;
}

bool cpu_devices_were_set() {
  CpuDevices& c = cpu_devices();
  const std::lock_guard lock(c.mutex);
  return c.set || count_from_environment("SHARDARRAY_CPU_DEVICES", most_devices).has_value();
}

std::optional<int> count_from_environment(const char* variable, int max) {
  try {
    const std::int64_t n = env_int(variable, 0, 1, max);
    return n == 0 ? std::nullopt : std::optional(static_cast<int>(n));
  } catch (const Error& e) { throw DeviceError(e.text()); }
}

std::vector<Device> devices(std::string_view platform, Where w) {
  const Site site(w);
  return platform_devices("devices", platform.empty() ? default_platform() : platform);
}

std::vector<Device> local_devices(Where w) {
  const Site site(w);
  std::vector<Device> all = devices("", w);
  std::erase_if(all, [](const Device& d) { return d.process_index != process_index(); });
  return all;
}
int device_count(Where w) { return static_cast<int>(devices("", w).size()); }

int local_device_count(Where w) { return static_cast<int>(local_devices(w).size()); }
int process_index(Where w) {
  const Site site(w);
  const Processes* const all = other_processes();
  return all == nullptr ? 0 : all->index();
}
int process_count(Where w) {
  const Site site(w);
  const Processes* const all = other_processes();
  return all == nullptr ? 1 : all->count();
}
bool spans_processes(std::span<const Device> devices) {
  return std::any_of(devices.begin(), devices.end(),
                     [](const Device& d) { return d.process_index != process_index(); });
}

bool in_several_processes(std::span<const Device> devices) {
  return std::any_of(devices.begin(), devices.end(),
                     [&](const Device& d) { return d.process_index != devices[0].process_index; });
}

void set_cpu_device_count(int n, Where w) {
  const Site site(w);
  if (n < 1 || n > most_devices) {
    throw DeviceError(
        fmt::format("set_cpu_device_count: the number is {}. It must be from 1 to {}. Choose another number.",
                    n, most_devices));
  }
  if (default_was_found())
    throw DeviceError(
        fmt::format("set_cpu_device_count: {} asked for, but arrays go to a GPU already. The call says that "
                    "they go to the CPU, before the first use of a device. Call it first in main, or name "
                    "the platform in SHARDARRAY_PLATFORM.",
                    count_text(n, "device")));
  CpuDevices& c = cpu_devices();
  const std::lock_guard lock(c.mutex);
  if (c.used && n != c.count) {
    throw DeviceError(fmt::format(
        "set_cpu_device_count: {} asked for, but the process uses {} already. The number is fixed at the "
        "first use of a device. Call it first in main, or set SHARDARRAY_CPU_DEVICES={}.",
        count_text(n, "device"), c.count, n));
  }
  c.count = n;
  c.set = true;
}

const Device& current_default_device() { return default_device_of(current_modes()); }

static void set_default_device(const std::optional<Device>& d) {
  Modes m = current_modes();
  m.default_device = d;
  set_modes(m);
}

void need_devices(const char* function, std::span<const Device> given) {
  for (const Device& d : given) {
    const std::optional<Device> known = known_device(function, d.platform, d.id);
    if (!known)
      throw DeviceError(fmt::format(
          "{}: there is no device {}:{}. The platform has {}, numbered from 0. Use one of devices().",
          function, d.platform, d.id, count_text(backend(function, d.platform).devices().size(), "device")));
    if (known->process_index != d.process_index)
      throw DeviceError(fmt::format(
          "{}: the device {} is said to be of process {}, but is of process {}. Where a device lies is not "
          "chosen. Use one of devices().",
          function, to_string(d), d.process_index, known->process_index));
    if (known->memory != d.memory)
      throw DeviceError(fmt::format(
          "{}: the device {} is said to be in memory {}, but is in memory {}. Where a device lies is not "
          "chosen. Use one of devices().",
          function, to_string(d), d.memory, known->memory));
  }
}

int local_index(const Device& d) { return local_number("local_index", d.platform, d.id); }

Instances addressable_instances(const Layout& layout, bool share_replicas) {
  Instances all = instances_of(layout, share_replicas);
  const std::vector<Device>& devices = layout.order()->devices();
  const auto is_here = [](const Device& d) { return d.process_index == process_index(); };
  if (std::all_of(devices.begin(), devices.end(), is_here)) return all;
  Instances here;
  std::vector<int> number(all.leader.size(), -1);
  for (std::size_t i = 0; i < all.leader.size(); i++) {
    if (!is_here(devices[static_cast<std::size_t>(all.leader[i])])) continue;
    number[i] = here.count();
    here.leader.push_back(all.leader[i]);
  }
  for (const int i : all.of_position) here.of_position.push_back(number[static_cast<std::size_t>(i)]);
  return here;
}

default_device::default_device(const Device& d, Where w) : previous_(current_modes().default_device) {
  const Site site(w);
  need_devices("default_device", {&d, 1});
  if (d.process_index != process_index())
    throw DeviceError(fmt::format(
        "default_device: {} is of process {}, this is process {}. New arrays lie where this process can "
        "write. Use one of local_devices().",
        to_string(d), d.process_index, process_index()));
  set_default_device(d);
}

default_device::~default_device() { set_default_device(previous_); }

DeviceGrid create_device_mesh(const Shape& shape, std::vector<Device> given, Where w) {
  const Site site(w);
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
      known = std::min(known * size, n + 1);  // saturates: any value above n is invalid
    }
  }
  if (open != nullptr && valid && n % known == 0) {
    *open = n / known;
    known = n;
  }
  if (!valid || known != n) {
    throw DeviceError(
        fmt::format("create_device_mesh: the shape {} does not fit {}. Its sizes must multiply to the number "
                    "of devices; one of them may be -1. Change the shape or pass that many devices.",
                    to_string(shape), count_text(n, "device")));
  }
  return grid;
}

}  // namespace shardarray

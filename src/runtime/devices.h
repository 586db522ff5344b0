// Device functions shared within floor 2, and counts set in the environment.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layout/layout.h"
#include "runtime/platforms.h"
#include "shardarray/device.h"

namespace shardarray {

class Transport;

/// Where this thread creates uncommitted arrays.
const Device& current_default_device();

/// Throws DeviceError naming `function` for a device that this process does not have, or whose description does not match.
void need_devices(const char* function, std::span<const Device> given);

/// Whether devices of other processes exist.
bool has_other_processes();
/// Whether some devices belong to other processes.
bool spans_processes(std::span<const Device> devices);
/// Whether they belong to more than one process; the same answer in all processes.
bool in_several_processes(std::span<const Device> devices);
/// The device's number within its backend (Device::id counts over all processes); -1 if another process has it.
int local_index(const Device& d);
/// The instances in this process; positions of other processes have instance -1.
Instances addressable_instances(const Layout& layout, bool share_replicas);

/// An integer in [1, max] from the environment; nullopt if the variable is unset or empty. Throws DeviceError naming the variable and its
/// value.
std::optional<int> count_from_environment(const char* variable, int max);

/// Whether the number of virtual CPU devices was set by the program or the environment. Throws like count_from_environment().
bool cpu_devices_were_set();
/// The number of virtual CPU devices, from set_cpu_device_count() or the environment; calling this fixes it.
int cpu_device_count();
/// The backend of `device_count` virtual devices; defined in src/cpu. `transport` connects other processes, if not null. `all`: the devices
/// of all processes; empty: only these.
std::unique_ptr<Backend> make_cpu_backend(int device_count, Transport* transport = nullptr,
                                          std::vector<Device> all = {});

}  // namespace shardarray

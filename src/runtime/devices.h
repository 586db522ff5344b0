// What floor 2 shares about devices, and counts that users set in the environment.
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

/// Where new uncommitted arrays of this thread go.
const Device& current_default_device();

/// Throws DeviceError naming `function` for one that this process does not have, or that lies elsewhere than it says.
void need_devices(const char* function, std::span<const Device> given);

/// Whether devices of other processes are known.
bool has_other_processes();
/// Whether there are devices of other processes among them.
bool spans_processes(std::span<const Device> devices);
/// Whether they are of more than one process: in all processes the same answer.
bool in_several_processes(std::span<const Device> devices);
/// Its number within its backend (Device::id counts over all processes); -1 where another process has it.
int local_index(const Device& d);
/// Those instances that are in this process: positions of others have instance -1.
Instances addressable_instances(const Layout& layout, bool share_replicas);

/// A whole number in [1, max] from the environment; nothing when the variable is unset or empty.
/// Throws DeviceError naming the variable and its value.
std::optional<int> count_from_environment(const char* variable, int max);

/// Whether the program or its user has said how many virtual CPU devices there are. Throws as count_from_environment().
bool cpu_devices_were_set();
/// How many virtual CPU devices there are: chosen once, by set_cpu_device_count() or the environment; fixed from now on.
int cpu_device_count();
/// Defined in src/cpu: the backend of `device_count` virtual devices. `transport` goes to other processes; null: there are none.
/// `all`: the devices of all processes; empty: these are all.
std::unique_ptr<Backend> make_cpu_backend(int device_count, Transport* transport = nullptr,
                                          std::vector<Device> all = {});

}  // namespace shardarray

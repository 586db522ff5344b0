// The platforms of this process: a name, a backend created at first use, and its devices. "cpu" is built in; "cuda", or "gpu", is a
// plug-in, opened at first use.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backend.h"
#include "runtime/plugin.h"

namespace shardarray {

using BackendFactory = std::function<std::unique_ptr<Backend>()>;

/// The CPU backend, for what another backend has no kernels for. Must not be called while a platform is being created.
using HostBackend = Backend& (*)();
class Processes;
/// A plug-in that provides a platform.
struct BackendPlugin : Plugin {
  /// `others`: all processes, which create it collectively; null if there is only one. Throws DeviceError if this process has no such
  /// devices.
  std::unique_ptr<Backend> (*make)(HostBackend host, Processes* others) = nullptr;
};

/// Adds a platform. If `make` throws DeviceError the platform has no devices now, and is tried again at the next use. Throws DeviceError if
/// the name is taken.
void add_platform(std::string name, BackendFactory make);

/// The backend of a platform. Throws DeviceError if it is unknown, in the name of `function`, or whatever its factory throws. "cpu" always
/// exists.
Backend& backend(const char* function, std::string_view platform);
inline Backend& backend(std::string_view platform) { return backend("backend", platform); }
/// A number of the backend in use, unique in this process. Throws DeviceError like backend().
std::uint64_t backend_number(std::string_view platform);
/// The devices of a platform. Throws DeviceError like backend().
std::vector<Device> platform_devices(const char* function, std::string_view platform);
/// The device with this id according to the backend in use, if it exists. Throws like backend().
std::optional<Device> known_device(const char* function, std::string_view platform, int id);
/// Its number within the backend in use, or -1 if this process does not have it. Throws like backend().
int local_number(const char* function, std::string_view platform, int id);
/// SHARDARRAY_PLATFORM if set; "cpu" if a number of CPU devices was set; otherwise "cuda" if it has devices, else "cpu". Decided at the
/// first call. Throws DeviceError if unknown.
const std::string& default_platform();
/// Whether it is "cuda" only because a GPU was found.
bool default_was_found();
/// Replaces a platform's backend and returns the previous one (for fault tests). The devices stay. Threads may still use either, so both
/// must live forever once anything was computed on them.
Backend* set_backend(std::string_view platform, Backend* b);

}  // namespace shardarray

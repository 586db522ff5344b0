// The platforms of this process: each is a name, a backend that is made at the first use, and its devices. "cpu" is a part of the
// library; "cuda", or "gpu", is a plug-in, opened at the first use.
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

/// The CPU's backend, for what another one has no kernels for. Not to be asked for while a platform is made.
using HostBackend = Backend& (*)();
class Processes;
/// What a plug-in that is a platform brings.
struct BackendPlugin : Plugin {
  /// `others`: all processes, which make it together; null: there is one. Throws DeviceError where the process has no devices of it.
  std::unique_ptr<Backend> (*make)(HostBackend host, Processes* others) = nullptr;
};

/// Adds a platform. `make` may throw DeviceError: then it has no devices now, and is asked again at the next use.
/// Throws DeviceError where the name is taken.
void add_platform(std::string name, BackendFactory make);

/// The backend of a platform. Throws DeviceError: in the name of `function` for an unknown one; as its factory does. "cpu" exists
/// always.
Backend& backend(const char* function, std::string_view platform);
inline Backend& backend(std::string_view platform) { return backend("backend", platform); }
/// Of the backend in use: no other one of this process has or had it. Throws DeviceError like backend().
std::uint64_t backend_number(std::string_view platform);
/// Its devices. Throws DeviceError like backend().
std::vector<Device> platform_devices(const char* function, std::string_view platform);
/// The one with this id, as the backend in use says; none: there is no such one. Throws like them.
std::optional<Device> known_device(const char* function, std::string_view platform, int id);
/// Its number within the backend in use; -1: another process has it, or nobody. Throws like them.
int local_number(const char* function, std::string_view platform, int id);
/// What SHARDARRAY_PLATFORM says; else "cpu" where a number of CPU devices was said; else "cuda" where it has devices, else "cpu".
/// Decided at the first call. Throws DeviceError for an unknown one.
const std::string& default_platform();
/// Whether it is "cuda" because a GPU was found, and nobody had said anything.
bool default_was_found();
/// Puts `b` in the place of a platform's backend and returns the one before (tests: faults). Its devices stay. Threads may have
/// numbers on either: both live for ever if anything is computed on them.
Backend* set_backend(std::string_view platform, Backend* b);

}  // namespace shardarray

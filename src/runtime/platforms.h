// The platforms of this process: each is a name, a backend that is made at the first use, and its devices.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backend.h"

namespace shardarray {

using BackendFactory = std::unique_ptr<Backend> (*)();

/// Adds a platform. `make` may throw DeviceError: then it has no devices now, and is asked again at the next use.
/// Throws DeviceError where the name is taken.
void add_platform(std::string name, BackendFactory make);

/// The backend of a platform. Throws DeviceError, in the name of `function`, for an unknown one. "cpu" exists always.
Backend& backend(const char* function, std::string_view platform);
inline Backend& backend(std::string_view platform) { return backend("backend", platform); }
/// Its devices. Throws DeviceError in the name of `function`.
std::vector<Device> platform_devices(const char* function, std::string_view platform);
/// Puts `b` in the place of a platform's backend and returns the one before (tests: faults). Its devices stay.
Backend* set_backend(std::string_view platform, Backend* b);

}  // namespace shardarray

// Devices: they run programs and hold shards of arrays.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardarray/export.h"
#include "shardarray/shape.h"
#include "shardarray/where.h"

namespace shardarray {

/// One device, a plain value, as listed by devices(). Prints as `cpu:3`.
struct SHARDARRAY_API Device {
  int id = 0;                    ///< from 0, unique within a platform among the devices a process knows
  std::string platform = "cpu";  ///< "cpu", "cuda", or a described machine's name (machine.h)
  int process_index = 0;         ///< the process that can access its memory
  std::string kind = "cpu";      ///< the hardware's own name
  int memory =
      0;  ///< devices of a process with equal numbers share one memory, and replicas in it share one buffer
  [[nodiscard]] friend bool operator==(const Device& a, const Device& b) {
    return a.id == b.id && a.platform == b.platform;
  }
};
/// `cpu:3`: platform and id.
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const Device& d);
[[nodiscard]] SHARDARRAY_API std::string to_string(const Device& d);

/// An n-dimensional, row-major grid of devices. Validated by the functions that take it.
struct SHARDARRAY_API DeviceGrid {
  Shape shape;                  ///< its product is the number of devices
  std::vector<Device> devices;  ///< the last dimension varies fastest
};

/// All devices of a platform, across all processes, in order of id. Platforms are "cpu" and "cuda" (or "gpu": NVIDIA GPUs). An empty
/// `platform` is the default one: the platform named by `SHARDARRAY_PLATFORM`; else "cpu" if a number of CPU devices was set by
/// `set_cpu_device_count` or `SHARDARRAY_CPU_DEVICES`; else "cuda" if there is a GPU, "cpu" otherwise. It is decided at the first use of
/// a device. A GPU that is present but unusable is reported once on stderr. CPU devices are virtual: their number is set by
/// `set_cpu_device_count` or `SHARDARRAY_CPU_DEVICES` (default 1). Each GPU provides `SHARDARRAY_CUDA_LOGICAL_DEVICES` devices (default
/// 1). Throws DeviceError for an unknown platform, for "cuda" if the library's plug-in, the driver or a GPU is missing, and for a
/// malformed environment variable. Calling any device function of this header may be the first use of a device.
[[nodiscard]] SHARDARRAY_API std::vector<Device> devices(std::string_view platform = "",
                                                         Where w = Where::here());
/// The devices of this process; the total number of devices and that of this process; the rank of this process, from 0, and the number of
/// processes. All refer to the default platform and throw as devices(). There is one process unless a launcher started several
/// (processes.h).
[[nodiscard]] SHARDARRAY_API std::vector<Device> local_devices(Where w = Where::here());
[[nodiscard]] SHARDARRAY_API int device_count(Where w = Where::here());
[[nodiscard]] SHARDARRAY_API int local_device_count(Where w = Where::here());
[[nodiscard]] SHARDARRAY_API int process_index(Where w = Where::here());
[[nodiscard]] SHARDARRAY_API int process_count(Where w = Where::here());
/// Sets the number of virtual CPU devices, overriding SHARDARRAY_CPU_DEVICES, and makes "cpu" the default platform unless
/// `SHARDARRAY_PLATFORM` names another. Throws DeviceError unless 1 <= n <= 4096, after the first use of a CPU device unless n is already
/// their number, and if a GPU has already become the default.
SHARDARRAY_API void set_cpu_device_count(int n, Where w = Where::here());

/// While it lives, new uncommitted arrays of this thread are placed on `d`: those from host data, and those computed only from numbers or
/// from uncommitted arrays on several devices. It applies when an array is recorded, not when its value is read. Literals follow the
/// arrays they are combined with. A traced function uses its caller's default device. Default: the first device of the default platform.
/// Guards nest. Throws DeviceError for a device that does not exist.
class SHARDARRAY_API default_device {
 public:
  explicit default_device(const Device& d, Where w = Where::here());
  ~default_device();
  default_device(const default_device&) = delete;
  default_device& operator=(const default_device&) = delete;

 private:
  std::optional<Device> previous_;
};

/// Arranges `devices` (default: all of the default platform) as a row-major grid of `shape`. One entry of `shape` may be -1 and is
/// inferred. Throws DeviceError unless the sizes are positive and multiply to the number of devices.
[[nodiscard]] SHARDARRAY_API DeviceGrid create_device_mesh(const Shape& shape,
                                                           std::vector<Device> devices = {},
                                                           Where w = Where::here());

}  // namespace shardarray

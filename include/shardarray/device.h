// Devices: what runs a program and holds a piece of an array.
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

/// One device, a plain value, as devices() lists it: where it lies is not chosen. Streams as `cpu:3`.
struct SHARDARRAY_API Device {
  int id = 0;                    ///< from 0, unique among those of a platform that a process knows
  std::string platform = "cpu";  ///< "cpu", "cuda", or a described machine's name (machine.h)
  int process_index = 0;         ///< the process that can reach its memory
  std::string kind = "cpu";      ///< the hardware's own name
  int memory =
      0;  ///< devices of a process with equal numbers share one memory: replicas in it are one buffer
  [[nodiscard]] friend bool operator==(const Device& a, const Device& b) {
    return a.id == b.id && a.platform == b.platform;
  }
};
/// `cpu:3`: platform and id.
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const Device& d);
[[nodiscard]] SHARDARRAY_API std::string to_string(const Device& d);

/// An n-dimensional grid of devices, row-major. What takes one checks it.
struct SHARDARRAY_API DeviceGrid {
  Shape shape;                  ///< sizes that multiply to the number of devices
  std::vector<Device> devices;  ///< the last dimension varies fastest
};

/// All devices of a platform, those of all processes, in order of id. Platforms are "cpu" and
/// "cuda" (or "gpu": NVIDIA GPUs); an empty `platform` is the default one: which `SHARDARRAY_PLATFORM` names; else "cpu" where somebody has said how many CPU devices there are, by
/// `set_cpu_device_count` or `SHARDARRAY_CPU_DEVICES`; else "cuda" where there is a GPU, and "cpu" where there is none. The first use
/// of a device decides. A GPU that is there and cannot be used is named once on stderr.
/// CPU devices are virtual: as many as `set_cpu_device_count` or `SHARDARRAY_CPU_DEVICES` say (default 1). Each GPU has as many
/// devices as `SHARDARRAY_CUDA_LOGICAL_DEVICES` says (default 1).
/// Throws DeviceError for an unknown platform, for "cuda" where the library's plug-in, the driver or a GPU is missing, and for a
/// variable that is not understood. All functions of devices here may be the first use of a device.
[[nodiscard]] SHARDARRAY_API std::vector<Device> devices(std::string_view platform = "",
                                                         Where w = Where::here());
/// Those of this process; how many there are of all and of this process; the number of this process, from 0, and of processes.
/// All are of the default platform and throw as devices(). There is one process unless a launcher has started several
/// (processes.h).
[[nodiscard]] SHARDARRAY_API std::vector<Device> local_devices(Where w = Where::here());
[[nodiscard]] SHARDARRAY_API int device_count(Where w = Where::here());
[[nodiscard]] SHARDARRAY_API int local_device_count(Where w = Where::here());
[[nodiscard]] SHARDARRAY_API int process_index(Where w = Where::here());
[[nodiscard]] SHARDARRAY_API int process_count(Where w = Where::here());
/// Sets the number of virtual CPU devices, over SHARDARRAY_CPU_DEVICES, and makes "cpu" the default platform unless
/// `SHARDARRAY_PLATFORM` names another. Throws DeviceError unless n is from 1 to 4096, after the first use of a CPU device unless n is
/// their number already, and where a GPU has become the default before.
SHARDARRAY_API void set_cpu_device_count(int n, Where w = Where::here());

/// Places new uncommitted arrays of this thread on `d` while it lives: those of host data, and those that are computed from
/// nothing but numbers, or from uncommitted arrays on several devices. It holds where the line stands, not where its value is
/// asked for. Literals go where the arrays are that they meet. In a traced function it is the caller's. Default: the first device
/// of the default platform. Guards nest. Throws DeviceError for a device that does not exist.
class SHARDARRAY_API default_device {
 public:
  explicit default_device(const Device& d, Where w = Where::here());
  ~default_device();
  default_device(const default_device&) = delete;
  default_device& operator=(const default_device&) = delete;

 private:
  std::optional<Device> previous_;
};

/// `devices` (none: all of the default platform) as a grid of `shape`, row-major. One entry of `shape` may be -1: what is left.
/// Throws DeviceError unless the sizes are positive and multiply to the number of devices.
[[nodiscard]] SHARDARRAY_API DeviceGrid create_device_mesh(const Shape& shape,
                                                           std::vector<Device> devices = {},
                                                           Where w = Where::here());

}  // namespace shardarray

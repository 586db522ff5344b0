// Descriptions of machines, which need not be here, and measurements of this one. Arrays without values (shape_dtype_struct) can be
// placed on their devices; explain() then tells what a program would move, need and take there. Planning uses the machine's numbers: on
// real devices of that kind the library plans with what it knows about them, which may differ.
//
//     const Machine there = machine("h200x64");
//     const Mesh mesh({{8, 8}, there.devices()}, {"data", "model"});
//     const Array x = shape_dtype_struct({8192, 4096}, bfloat16, NamedSharding(mesh, P("data"))),
//                 w = shape_dtype_struct({4096, 4096}, bfloat16, NamedSharding(mesh, P(none, "model")));
//     std::cout << explain([](const Array& a, const Array& b) { return matmul(a, b); }, x, w);
#pragma once
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shardarray/device.h"

namespace shardarray {

/// Links of one kind: they connect two devices whose numbers, divided by `devices`, are equal.
struct SHARDARRAY_API Link {
  std::string name;      ///< "NVLink"
  int devices = 1;       ///< per group; a group consists of whole groups of the previous links
  double bandwidth = 0;  ///< bytes per second received by a device
  double latency = 0;    ///< seconds per message
  [[nodiscard]] friend bool operator==(const Link&, const Link&) = default;
};

/// The properties of a machine. All numbers are per device.
struct SHARDARRAY_API Machine {
  std::string name;             ///< letters, digits, `_`, `-` and `.`: the platform of its devices
  std::string kind;             ///< the hardware's own name
  int device_count = 1;         ///< 1 to 4,096
  double memory = 0;            ///< bytes
  double memory_bandwidth = 0;  ///< bytes per second, reads plus writes
  double step_latency = 0;      ///< seconds to launch a step (loop, product, library call)
  /// Operations per second of matrix products, by dtype ("float32", "bfloat16", ..; "tf32" for float32 at that precision); a multiply-add
  /// counts two. "float32" is required, and is used for dtypes that are missing.
  std::map<std::string, double> flops;
  /// Rows, columns and terms (m, n, k) added to the size of a product, or of a convolution as one, when predicting its time, since small
  /// and thin ones take longer per operation. `flops` is the rate for the padded size, which large products come close to.
  std::array<double, 3> product_padding{};
  std::vector<Link>
      links;  ///< from the nearest devices to all: the last link joins all devices; none for one device
  std::string source;  ///< where the numbers come from

  /// Its devices, numbered from 0, on platform `name`. They hold no values: computing on them or placing values there throws DeviceError.
  /// Throws DeviceError for an invalid number, if `name` is another platform's, and if devices were already requested for a machine of
  /// this name with other numbers.
  [[nodiscard]] std::vector<Device> devices(Where w = Where::here()) const;
  [[nodiscard]] friend bool operator==(const Machine&, const Machine&) = default;
};

/// A machine by name, or by the path of a `.json` file (machine_from_json()). Throws DeviceError for an unknown name, IoError for a file
/// that cannot be read.
[[nodiscard]] SHARDARRAY_API Machine machine(const std::string& name, Where w = Where::here());
/// The names known to machine(): "h200" (one), "h200x8" (a node), "h200x64" (eight nodes) and "tpu-v5p-64" (a 4 x 4 x 4 torus).
[[nodiscard]] SHARDARRAY_API std::vector<std::string> machine_names();

/// Measures existing devices of one process while all of them work: products of each dtype, a loop over memory, a chain of small steps,
/// an all_to_all. Default: devices(). Takes about a second at the first call for these devices; the result is kept. For eight devices of
/// platform "cpu" its name is `here-cpu-8`. `explain(f, x).on(this_machine())` predicts how long a call takes. Throws DeviceError for
/// described devices, and for devices of several processes.
[[nodiscard]] SHARDARRAY_API Machine this_machine(const std::vector<Device>& devices = {},
                                                  Where w = Where::here());

/// The machine as JSON for machine_from_json(): an object with the members of Machine; `links` is an array of objects with those of Link.
[[nodiscard]] SHARDARRAY_API std::string machine_json(const Machine& m);
/// The machine described by JSON text. Throws DeviceError for invalid JSON, a missing or unknown member, and an invalid number.
[[nodiscard]] SHARDARRAY_API Machine machine_from_json(std::string_view text, Where w = Where::here());

}  // namespace shardarray

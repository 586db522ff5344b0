// Machines by their numbers: those that need not be here, and the one that is. Arrays without values (shape_dtype_struct) lie on their devices as others do; explain() then tells what a
// program would move, need and take there. It is planned for the machine's numbers: on real devices of that kind the library plans for what
// it knows of these, which may differ.
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

/// Links of one kind: two devices reach each other over them if their numbers, divided by `devices`, are equal.
struct SHARDARRAY_API Link {
  std::string name;      ///< "NVLink"
  int devices = 1;       ///< of a group; a group is made of whole groups of the links before
  double bandwidth = 0;  ///< bytes a second that a device receives
  double latency = 0;    ///< seconds of a message
  [[nodiscard]] friend bool operator==(const Link&, const Link&) = default;
};

/// What a machine has. All numbers are of one device.
struct SHARDARRAY_API Machine {
  std::string name;             ///< of letters, digits, `_`, `-` and `.`: the platform of its devices
  std::string kind;             ///< the hardware's own name
  int device_count = 1;         ///< 1 to 4,096
  double memory = 0;            ///< bytes
  double memory_bandwidth = 0;  ///< bytes a second, read and written together
  double step_latency = 0;      ///< seconds that a step (loop, product, library call) costs to begin
  /// Operations a second of products, by dtype ("float32", "bfloat16", ..; "tf32" for float32 at that precision); a multiplication
  /// and an addition are two. "float32" has to be there, and holds for the dtypes that are not.
  std::map<std::string, double> flops;
  /// Rows, columns and terms (m, n, k) that a product, or a convolution as one, seems to have more than it has: small and thin ones take
  /// longer an operation. `flops` is the rate of that many operations, which large products come near to.
  std::array<double, 3> product_padding{};
  std::vector<Link>
      links;           ///< from the nearest devices to all: the last one joins them all; none for one device
  std::string source;  ///< where the numbers come from

  /// Its devices, numbered from 0, of the platform `name`. They hold no values: what would compute or place some on them throws
  /// DeviceError. Throws DeviceError where a number makes no sense, where `name` is another platform's, and where a machine of this name
  /// with other numbers has given devices before.
  [[nodiscard]] std::vector<Device> devices(Where w = Where::here()) const;
  [[nodiscard]] friend bool operator==(const Machine&, const Machine&) = default;
};

/// A machine by its name, or by the path of a file that ends with `.json` (machine_from_json()). Throws DeviceError for another name,
/// IoError for a file that cannot be read.
[[nodiscard]] SHARDARRAY_API Machine machine(const std::string& name, Where w = Where::here());
/// The names that machine() knows: "h200" (one), "h200x8" (a node), "h200x64" (eight nodes) and "tpu-v5p-64" (a 4 x 4 x 4 torus).
[[nodiscard]] SHARDARRAY_API std::vector<std::string> machine_names();

/// Measures devices that are here, of one process, while all of them work: products of each dtype, a loop over
/// memory, a chain of small steps, an all_to_all. Empty: devices(). Takes about a second at the first call for these devices, then knows.
/// Its name is `here-cpu-8` for eight of the platform "cpu". `explain(f, x).on(this_machine())` tells how long a call will take. Throws
/// DeviceError for described devices, and for those of several processes.
[[nodiscard]] SHARDARRAY_API Machine this_machine(const std::vector<Device>& devices = {},
                                                  Where w = Where::here());

/// A machine as JSON, which machine_from_json() reads: an object with the members of Machine, `links` an array of objects with those of
/// Link.
[[nodiscard]] SHARDARRAY_API std::string machine_json(const Machine& m);
/// The machine that a JSON text describes. Throws DeviceError for a text that is no JSON, lacks a member or has another one, and
/// where a number makes no sense.
[[nodiscard]] SHARDARRAY_API Machine machine_from_json(std::string_view text, Where w = Where::here());

}  // namespace shardarray

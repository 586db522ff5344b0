// What a program depends on besides its arguments. Recording captures the thread's modes: they are those of the source line, not of the
// place where the value is read.
#pragma once
#include <cstdint>
#include <optional>

#include "shardarray/device.h"

namespace shardarray {

/// How sharding conflicts are resolved: by cost; by propagation priorities alone; never implicitly. See shardarray/policy.h.
enum class Policy : std::uint8_t { auto_, follow, strict };

struct Modes {
  Policy policy = Policy::auto_;
  bool reproducible = false;                            ///< float sums in an order independent of sharding
  bool partitionable_random = true;                     ///< see random::partitionable
  bool tf32 = false;                                    ///< see shardarray/tf32.h
  bool flush_denormals = false;                         ///< see shardarray/flush_denormals.h
  bool philox_random = false;                           ///< see random::philox
  std::optional<Device> default_device = std::nullopt;  ///< nullopt: the first device of the default platform
  friend bool operator==(const Modes&, const Modes&) = default;
};

/// The modes of this thread. Equal modes are one object, never destroyed.
const Modes& current_modes();
/// Sets the modes of this thread; returns the previous ones.
const Modes& set_modes(const Modes& m);
/// RAII form of set_modes; `m` is an object returned by these functions.
class ScopedModes {
 public:
  explicit ScopedModes(const Modes* m);
  ~ScopedModes();
  ScopedModes(const ScopedModes&) = delete;
  ScopedModes& operator=(const ScopedModes&) = delete;

 private:
  const Modes* before_;
};

/// Where new uncommitted arrays are placed under these modes.
const Device& default_device_of(const Modes& m);

}  // namespace shardarray

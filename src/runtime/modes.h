// What a program depends on beside its arguments. A line takes the modes of its thread, and what it records keeps them:
// they hold where the line stands, not where a value is asked for.
#pragma once
#include <cstdint>
#include <optional>

#include "shardarray/device.h"

namespace shardarray {

/// How conflicts between shardings are settled: by cost; by propagation priorities alone; never silently. See
/// shardarray/policy.h.
enum class Policy : std::uint8_t { auto_, follow, strict };

struct Modes {
  Policy policy = Policy::auto_;
  bool reproducible = false;                            ///< float sums in an order that no sharding changes
  bool partitionable_random = true;                     ///< see random::partitionable
  bool tf32 = false;                                    ///< see shardarray/tf32.h
  bool flush_denormals = false;                         ///< see shardarray/flush_denormals.h
  bool philox_random = false;                           ///< see random::philox
  std::optional<Device> default_device = std::nullopt;  ///< none: the first of the default platform
  friend bool operator==(const Modes&, const Modes&) = default;
};

/// Those of this thread now. Equal modes are one object, which lives for ever.
const Modes& current_modes();
/// Makes `m` those of this thread; returns the ones before.
const Modes& set_modes(const Modes& m);
/// set_modes while it lives; `m` is such an object.
class ScopedModes {
 public:
  explicit ScopedModes(const Modes* m);
  ~ScopedModes();
  ScopedModes(const ScopedModes&) = delete;
  ScopedModes& operator=(const ScopedModes&) = delete;

 private:
  const Modes* before_;
};

/// Where new uncommitted arrays go under these modes.
const Device& default_device_of(const Modes& m);

}  // namespace shardarray

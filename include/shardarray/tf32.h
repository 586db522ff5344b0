// Products of float32 matrices on tensor cores.
#pragma once
#include "shardarray/detail/mode_guard.h"

namespace shardarray {

/// While it lives, products of float32 matrices in this thread's lines may use TF32 on GPUs that support it: operands are rounded to 11
/// significant bits (a relative error of 5e-4 each), products are accumulated in float32. That is JAX's default on GPUs and about eight
/// times as fast; here the default is IEEE float32 everywhere.
///
///     tf32 on(true);
///     std::tie(model, state, loss) = step(std::move(model), std::move(state), batch);
///
/// Like `reproducible`, which takes precedence, it applies to operations recorded while it lives; derivatives have the mode of the lines
/// they derive from. Not used on the CPU, nor for products too small for cuBLASLt. Guards nest; a jitted function is traced once per mode
/// of its callers.
class SHARDARRAY_API tf32 : detail::ModeGuard {
 public:
  /// true: as above; false: IEEE float32.
  explicit tf32(bool on);
};

}  // namespace shardarray

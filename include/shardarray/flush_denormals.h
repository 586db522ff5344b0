// Flushing denormal numbers to zero.
#pragma once
#include "shardarray/detail/mode_guard.h"

namespace shardarray {

/// While it lives, arithmetic of this thread's lines treats denormals (below 1.2e-38 in float32, 2.2e-308 in float64) as 0 and returns 0
/// instead of them, as JAX does on the CPU. The default keeps them, as IEEE requires; processors are then 5 to 9 times slower where
/// values vanish: closing gates, vanishing gradients, decaying optimizer states.
///
///     flush_denormals on(true);
///     std::tie(model, state, loss) = step(std::move(model), std::move(state), batch);
///
/// Like `reproducible`, it applies to operations recorded while it lives, on every worker; derivatives have the mode of the lines they
/// derive from. A program may mix both kinds, which are not fused with each other. Zeros keep their sign. Operations that only move or
/// select values (copies, gathers, minima, casts of 16-bit floats) may keep denormals, differently in generated code and the interpreter.
/// The thread's own floating-point mode is not changed elsewhere. CUDA devices ignore it: they keep denormals, at no cost. Guards nest; a
/// jitted function is traced once per mode of its callers. SHARDARRAY_FLUSH_DENORMALS=1 makes it the process default.
class SHARDARRAY_API flush_denormals : detail::ModeGuard {
 public:
  /// true: as above; false: IEEE.
  explicit flush_denormals(bool on);
};

}  // namespace shardarray

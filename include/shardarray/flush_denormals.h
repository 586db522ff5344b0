// Numbers below the smallest normal one.
#pragma once
#include "shardarray/detail/mode_guard.h"

namespace shardarray {

/// While it lives, arithmetic of this thread's lines takes denormals (below 1.2e-38 in float32, 2.2e-308 in float64) as 0 and
/// gives 0 in their place, as JAX does on the CPU. The default keeps them, as IEEE asks for; processors then work 5 to 9 times
/// as long where values vanish: gates that close, gradients that die out, decays of optimizers.
///
///     flush_denormals on(true);
///     std::tie(model, state, loss) = step(std::move(model), std::move(state), batch);
///
/// It holds where a line stands, as `reproducible` does: what is recorded while it lives has it, on every worker, and derivatives
/// have the mode of the lines that they are derived from. A program may have lines of both kinds, which are then no common loop.
/// Zeros keep their sign. What only moves or picks values (copies, gathers, minima, casts of 16-bit floats) may keep denormals, in
/// generated code and the interpreter differently. Elsewhere the thread's own floating point mode stays as it is. CUDA devices do
/// not have it: they keep denormals, at no cost. Guards nest; a jitted function is traced once for each mode of its callers.
/// SHARDARRAY_FLUSH_DENORMALS=1 makes it the default of the process.
class SHARDARRAY_API flush_denormals : detail::ModeGuard {
 public:
  /// true: as above; false: IEEE.
  explicit flush_denormals(bool on);
};

}  // namespace shardarray

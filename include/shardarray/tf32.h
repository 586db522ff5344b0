// Products of float32 on tensor cores.
#pragma once
#include "shardarray/detail/mode_guard.h"

namespace shardarray {

/// While it lives, products of float32 matrices of this thread's lines may be made in TF32 where a GPU has it: operands are
/// rounded to 11 significant bits (each to a relative error of 5e-4), products are added up in float32. That is JAX's default on GPUs
/// and about eight times as fast; here the default is IEEE float32 everywhere.
///
///     tf32 on(true);
///     std::tie(model, state, loss) = step(std::move(model), std::move(state), batch);
///
/// It holds where a line stands, as `reproducible` does, which goes before it; derivatives have the mode of the lines that they
/// are derived from. The CPU does not have it, nor have products that are too small for cuBLASLt. Guards nest; a jitted function
/// is traced once for each mode of its callers.
class SHARDARRAY_API tf32 : detail::ModeGuard {
 public:
  /// true: as above; false: IEEE float32.
  explicit tf32(bool on);
};

}  // namespace shardarray

// Results whose bits do not depend on the sharding.
#pragma once
#include "shardarray/detail/mode_guard.h"

namespace shardarray {

/// While it lives, this thread's lines sum floats in an order independent of the sharding: sums, means, matrix products and everything
/// built from them (a whole training step) have the same bits on 1, 2, 4 and 8 devices, with any number of workers. Integers, minima,
/// random numbers, data movement and elementwise arithmetic always have.
///
///     reproducible on(true);
///     std::tie(model, state, loss) = step(std::move(model), std::move(state), batch);
///
/// It applies when operations are recorded, not when values are read: operations recorded while it lives keep the mode, whoever reads the
/// value, when and on which thread; those recorded before do not get it. A program may mix both kinds. Guards nest. A jitted function is
/// traced once per mode of its callers; guards inside it apply to its own lines.
///
/// Summed dimensions are split into 8 blocks (2 or 4 for short ones) that no device splits further; neighbouring blocks are then added in
/// pairs. On more than 8 devices, or a number that is not a power of two, values are gathered first. Matrix products use the library's
/// own kernel. `./dev bench reproducible` shows the cost. Bits may differ between processors with and without fused multiply-add; psum in
/// a pmap has as many terms as there are devices.
class SHARDARRAY_API reproducible : detail::ModeGuard {
 public:
  /// true: as above; false: as without a guard, the default.
  explicit reproducible(bool on);
};

}  // namespace shardarray

// Bits that do not depend on the sharding.
#pragma once
#include "shardarray/detail/mode_guard.h"

namespace shardarray {

/// While it lives, lines of this thread sum floats in an order that no sharding changes: sums, means, products of
/// matrices and all that is made of them (a whole training step) have the same bits on 1, 2, 4 and 8 devices, with any
/// number of workers. Integers, minima, random numbers, data movement and elementwise arithmetic have them anyway.
///
///     reproducible on(true);
///     std::tie(model, state, loss) = step(std::move(model), std::move(state), batch);
///
/// It holds where a line stands, not where its value is asked for: what is recorded while it lives keeps it, whoever reads
/// the value when and on which thread; what was recorded before does not get it. A program may have lines of both kinds.
/// Guards nest. A jitted function is traced once for each mode of its callers; guards inside of it hold for its lines.
///
/// What is summed over is cut into 8 blocks (2 or 4 where it is shorter) that no device cuts; neighbouring blocks are then
/// added in pairs. On more than 8 devices, or a number that is no power of two, values are gathered first. Matrix products
/// run in the library's own kernel. `./dev bench reproducible` shows what it costs. Between processors with and without
/// fused multiply-add bits may differ; the psum of a pmap is over as many terms as there are devices.
class SHARDARRAY_API reproducible : detail::ModeGuard {
 public:
  /// true: as above; false: as without a guard, which is the default.
  explicit reproducible(bool on);
};

}  // namespace shardarray

// Large sums over processes in two steps, reduce-scatter and all-gather: of L bytes on g devices each receives 2 (g-1)/g L, not (g-1) L.
#pragma once
#include "layout/layout.h"
#include "runtime/program.h"

namespace shardarray {

/// Where whole tiles are sums of the same tiles and lie in several processes, each receiver is left in `sums` with the sum of one part;
/// the result has the parts that go from there to the others. Every element is combined as before, in the same order. Without items: no
/// such sum is large enough, `sums` is as it was.
Exchange share_sums(Exchange& sums, const DeviceOrder& order);

}  // namespace shardarray
